//! `windlass install`: a bundle of this machine, into a cluster.
//!
//! ```text
//! bundle -> checked -> ConfigMaps -> BundleDeployment -> their owner -> ready -> ConfigMaps of before deleted
//! ```
//!
//! Any of these writes may be the last one. ConfigMaps are named by what they hold and never change, so what a
//! BundleDeployment refers to is always there, the old bundle or the new one, and the same command goes on from where
//! another has ended.

mod command;
mod explained;
mod outcome;
mod parts;
mod watch_namespaces;

pub(super) use self::parts::stored;
pub(super) use command::Args;
