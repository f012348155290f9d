//! Fields that both types of policies share, apart from their selectors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An operation that a rule applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(inline)]
pub enum TargetOperation {
    /// Creating an object.
    Create,
    /// Updating an object.
    Update,
    /// Deleting an object.
    Delete,
    /// Connecting to an object, for example to a shell in a pod.
    Connect,
    /// All operations, including future ones. It must be the only entry.
    #[serde(rename = "*")]
    All,
}

/// The handling of requests if a policy cannot be evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum FailurePolicyType {
    /// Refuse the request. This is the default.
    #[default]
    Fail,
    /// Skip the policy.
    Ignore,
}

/// The handling of requests that a validate policy finds invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum ValidationAction {
    /// Refuse the request.
    Deny,
    /// Admit the request with a warning to the client.
    Warn,
    /// Admit the request and report it.
    Audit,
}
