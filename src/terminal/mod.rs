//! What commands print: tables, objects, and how far they are.

mod format;
mod progress;
mod table;
pub(crate) mod yaml;

pub(crate) use format::{Format, print};
pub(crate) use progress::Progress;
pub(crate) use table::Table;
