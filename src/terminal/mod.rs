//! Output of commands: tables, objects and progress.

mod format;
mod live_view;
mod progress;
mod table;
mod wait_status;
pub(crate) mod yaml;

pub(crate) use format::{Format, print};
pub(crate) use progress::{Progress, ProgressFormat};
pub(crate) use table::Table;
pub(crate) use wait_status::WaitStatus;
