//! The parsed contents of a case file.

use serde_json::Value;

use super::policy_case::PolicyCase;
use crate::KnownData;

/// Policies, with test cases.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyCases {
    /// Policies of the file, inline or by file name.
    pub policies: Vec<CasePolicy>,
    /// Data for all cases.
    pub data: KnownData,
    /// Cases in the order of the file.
    pub cases: Vec<PolicyCase>,
}

/// Policies in a case file.
#[derive(Clone, Debug, PartialEq)]
pub enum CasePolicy {
    /// The policies in a file: a relative path with `/` as separator, which stays in the folder of the case
    /// file, except for links.
    File(String),
    /// An inline policy.
    Inline(Value),
}
