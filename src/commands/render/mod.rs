//! `windlass render`: what an install of a bundle would apply.

mod command;
mod output;

pub(super) use command::Args;
