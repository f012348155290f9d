//! How far an install is, as conditions.

mod ailment;
mod bundle_health;
mod conditions;
mod outcome;

pub use ailment::Ailment;
pub use bundle_health::BundleHealth;
pub use conditions::{ConditionUpdate, Conditions};
pub use outcome::{InstallOutcome, Milestone, Standing};
