//! How far an install is, as conditions.

mod ailment;
mod bundle_health;
mod outcome;

pub use ailment::Ailment;
pub use bundle_health::BundleHealth;
pub use outcome::{InstallOutcome, Milestone, Standing};
pub use windlass_api::{ConditionUpdate, Conditions};
