//! What both policies have in common beside their selectors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// On which operations a rule acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(inline)]
pub enum TargetOperation {
    /// An object is created.
    Create,
    /// An object is changed.
    Update,
    /// An object is deleted.
    Delete,
    /// Somebody connects to an object, for example to a shell in a pod.
    Connect,
    /// All of these, and those that are added to Kubernetes later. It stands alone.
    #[serde(rename = "*")]
    All,
}

/// What becomes of a request when a policy cannot be evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum FailurePolicyType {
    /// It is refused. This is the default.
    #[default]
    Fail,
    /// It goes on as if the policy were not there.
    Ignore,
}

/// What becomes of a request that a validate policy objects to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum ValidationAction {
    /// It is refused.
    Deny,
    /// It goes on, and whoever sent it is warned.
    Warn,
    /// It goes on, and is reported.
    Audit,
}
