//! The operator: controllers that observe the cluster, compute a plan with pure functions, execute its steps
//! and report.
//!
//! Only this crate combines bundles, CustomResourceDefinitions and trust.

pub mod admission;
mod annotated_service;
mod announced;
pub mod bundle_deployment;
mod ca_injectors;
mod context;
mod controller;
mod controllers;
mod direct_injection;
mod extension_config;
pub mod extension_config_policies;
pub mod guard;
mod health;
mod injection;
mod injection_target;
mod injector_lease;
pub mod install;
mod interpretation;
mod listener;
mod metrics;
mod namespaces;
mod operator;
pub mod policies;
mod remote_cluster;
pub mod removal_obstacles;
mod servers;
pub mod serving_certificate;
mod standby;
mod tasks;

pub use context::{Context, RemoteTargets};
pub use controllers::{Controllers, UnknownController};
pub use listener::ServeError;
pub use operator::{Operator, OperatorError, OperatorOptions};
pub use tasks::TaskError;
