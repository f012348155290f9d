//! What commands print: tables, objects, and how far they are.

mod format;
mod progress;
mod table;

pub(super) use format::{Format, print};
pub(super) use progress::Progress;
pub(super) use table::Table;
