//! `windlass install --dry-run`: a preview of changes and granted rights, without writing anything.

mod difference;
mod overridden_plan;
mod preview;
mod report;
mod rights;

pub(super) use overridden_plan::planned_objects;
pub(super) use preview::Preview;
