//! Changes of an administrator to the Deployments of a bundle: OLM's deployment configuration, and Windlass's
//! defaults for serving.

mod apply;
mod config;
mod parse;

pub use config::{DeploymentConfig, ServingDefaults};
