//! A file of cases.

use serde_json::Value;

use super::policy_case::PolicyCase;
use crate::KnownData;

/// Policies, and what is expected of them.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyCases {
    /// The policies.
    pub policies: Vec<CasePolicy>,
    /// What is known for all cases.
    pub data: KnownData,
    /// The cases.
    pub cases: Vec<PolicyCase>,
}

/// Policies of a file of cases.
#[derive(Clone, Debug, PartialEq)]
pub enum CasePolicy {
    /// Those in a file: a relative path with `/` between its parts, which leads to nothing outside of the folder of the cases, but for
    /// links.
    File(String),
    /// This one.
    Inline(Value),
}
