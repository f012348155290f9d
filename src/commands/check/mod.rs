//! `windlass check`: validation of a bundle, or of an upgrade of CustomResourceDefinitions.

mod command;
mod crd_upgrade;

pub(super) use command::Args;
