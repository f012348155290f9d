//! How far an install is, as conditions.

mod conditions;
mod outcome;

pub use conditions::{ConditionUpdate, Conditions};
pub use outcome::{InstallOutcome, Milestone, Standing};
