//! What an administrator changes in the Deployments of a bundle: OLM's deployment configuration, and what Windlass adds
//! for serving.

mod apply;
mod config;
mod parse;

pub use config::{DeploymentConfig, ServingDefaults};
