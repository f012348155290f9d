//! `windlass install`: a bundle of this machine or in an image, into a cluster.
//!
//! ```text
//! bundle -> checked -> ConfigMaps -> BundleDeployment -> their owner -> ready
//! image ---------------------------> BundleDeployment ----------------> ready
//! ```
//!
//! Any of these writes may be the last one. ConfigMaps are named by what they hold and never change, so what a
//! BundleDeployment refers to is always there, the old bundle or the new one, and the same command goes on from where
//! another has ended. The operator deletes ConfigMaps that no source and no recorded revision refers to.

mod adopting;
mod command;
mod dry_run;
mod explained;
mod from_catalog;
mod outcome;
mod parts;
mod source;
mod watch_namespaces;

pub(super) use self::parts::stored;
pub(super) use command::{Args, done};
pub(super) use explained::explained_in;
pub(super) use outcome::{Watched, summary};
