//! What commands print: tables, objects, and how far they are.

mod format;
mod live_view;
mod progress;
mod table;
mod waiting;
pub(crate) mod yaml;

pub(crate) use format::{Format, print};
pub(crate) use progress::{Progress, ProgressFormat};
pub(crate) use table::Table;
pub(crate) use waiting::Waiting;
