//! `windlass bundle`: bundle images, without a cluster.

mod command;
mod folder;
mod pull;
mod push;
mod registry;
mod show;

pub(super) use command::Args;
pub(super) use registry::{RegistryArgs, explain_registry_error, reference};
