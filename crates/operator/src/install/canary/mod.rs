//! The canary: one pod of a new revision, tried out beside the old one before any pod of that is touched.
//!
//! It has none of the labels by which the pods of its Deployment are selected: no Service sends it requests, no
//! ReplicaSet counts it, and budgets and network policies that name those labels are not about it. What else is not as
//! in the template is said at [`pod()`].

mod pod;
mod state;
mod template;

pub use pod::{leads_to, pod, target_port};
pub use state::{PodState, UNSCHEDULABLE, state};
pub use template::{revision, stamp};
