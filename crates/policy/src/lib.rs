//! Policies for Kubernetes objects: they override and validate what is written, by rules that are data.
//!
//! The kinds are those of `policy.kcloudlabs.io/v1alpha1`: OverridePolicy for the objects of its namespace, ClusterOverridePolicy and
//! ClusterValidatePolicy for all.
//!
//! It is pure: what a rule needs from elsewhere, other objects and answers of servers, comes as an argument.

mod admission;
pub mod api;
mod crds;
pub mod patch;
mod policy_object;
mod problem;
pub mod render;
mod selection;

pub use self::{
    admission::{AdmissionAttributes, AdmissionOperation},
    crds::crds,
    policy_object::{PolicyKey, PolicyKind, PolicyObject, PolicySpec},
    problem::{PolicyProblem, SourcePosition},
    selection::SelectionError,
};
