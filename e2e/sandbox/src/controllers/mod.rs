//! In-process controllers: the part of kube-controller-manager that Windlass depends on.
//!
//! Each is level-triggered: a pass reads all objects and makes the missing writes. A pass runs after every
//! change of a watched resource, and at least once per second.

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
