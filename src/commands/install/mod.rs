//! `windlass install`: installs a local bundle or an image into a cluster.
//!
//! ```text
//! bundle -> checked -> ConfigMaps -> BundleDeployment -> their owner -> ready
//! image ---------------------------> BundleDeployment ----------------> ready
//! ```
//!
//! The command can be interrupted after each write, and resumed. ConfigMaps are named by their content and
//! immutable, so the ConfigMaps of a BundleDeployment, old or new, always exist. The operator deletes
//! ConfigMaps that no source and no recorded revision refers to.

mod bundle_config_maps;
mod catalog_install;
mod command;
mod dry_run;
mod namespace_error;
mod outcome;
mod source;
mod takeover;
mod watch_namespaces;

pub(super) use self::bundle_config_maps::list_config_maps;
pub(super) use command::{Args, change_verb};
pub(super) use namespace_error::explain_namespace_error;
pub(super) use outcome::{Watched, summary};
