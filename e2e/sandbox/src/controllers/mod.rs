//! The controllers of every cluster, in process: what kube-controller-manager does, as far as Windlass's paths need it.
//!
//! Each is level-triggered: a pass looks at everything that is there and makes the writes that are missing. A pass
//! follows every change of a resource that the controller watches, and a second without any.

mod claims;
mod client;
mod deployments;
mod endpoints;
mod garbage;
mod manager;
mod namespaces;
mod objects;
mod replica_sets;
mod rollout;
mod service_accounts;

#[cfg(test)]
mod tests;

pub(crate) use manager::start;
