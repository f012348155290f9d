//! The operator: controllers that read what is there, ask pure functions for a plan, do its steps, and report.
//!
//! This is the only place where bundles, CustomResourceDefinitions and trust meet.

pub mod admission;
mod annotated_service;
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
pub mod install;
mod interpretation;
pub mod leaving;
mod listener;
mod metrics;
mod namespaces;
mod operator;
mod other_leader;
pub mod policies;
mod remote_cluster;
mod reporting;
mod servers;
pub mod serving_certificate;
mod standby;
mod tasks;

pub use context::{Context, RemoteTargets};
pub use controllers::{Controllers, UnknownController};
pub use listener::ServeError;
pub use operator::{Operator, OperatorError, OperatorOptions};
pub use tasks::TaskError;
