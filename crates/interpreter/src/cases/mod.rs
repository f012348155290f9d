//! Cases of what a customization answers, in the format that Karmada publishes its own in.
//!
//! A file holds one case a document:
//!
//! ```yaml
//! name: "a rollout is under way"
//! operation: InterpretHealth          # in any case
//! desiredObj: {}                      # or observedObj; Retain takes both
//! statusItems: []                     # of AggregateStatus
//! inputReplicas: 2                    # of ReviseReplica
//! output:                             # what is not listed is not looked at
//!   healthy: false
//! ```
//!
//! An output has the name that the operation gives its results: see [`CaseResult`]. Within an output, the value `{{EXCLUDE}}` stands for
//! anything at all.

mod compare;
mod interpretation_case;
mod result;

pub use compare::Difference;
pub use interpretation_case::{CaseError, CaseFailure, CasePass, InterpretationCase};
pub use result::CaseResult;
