//! Test cases for customizations, in the format of Karmada's own.
//!
//! A file has one test case per YAML document:
//!
//! ```yaml
//! name: "a rollout is under way"
//! operation: InterpretHealth          # in any case
//! desiredObj: {}                      # or observedObj; Retain takes both
//! statusItems: []                     # of AggregateStatus
//! inputReplicas: 2                    # of ReviseReplica
//! output:                             # results that are not listed are not checked
//!   healthy: false
//! ```
//!
//! The names of results are listed at [`CaseResult`]. In an expected value, `{{EXCLUDE}}` matches anything.

mod compare;
mod interpretation_case;
mod result;

pub use compare::Difference;
pub use interpretation_case::{CaseError, CaseFailure, CasePass, InterpretationCase};
pub use result::CaseResult;
