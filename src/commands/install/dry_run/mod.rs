//! `windlass install --dry-run`: what an install would do, and what it would grant, with nothing written.

mod difference;
mod overridden_plan;
mod preview;
mod report;
mod rights;

pub(super) use overridden_plan::planned_objects;
pub(super) use preview::Preview;
