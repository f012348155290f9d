//! `windlass render`: the objects that an install of a bundle applies.

mod command;
mod output;

pub(super) use command::Args;
