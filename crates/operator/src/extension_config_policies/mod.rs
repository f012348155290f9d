//! Admission policies for ExtensionConfigs, from `manifests/extension-configs.yaml`. The controller disables
//! them if Cluster API's own webhooks exist, which default and validate the same with other messages.
//!
//! ```text
//! webhook configurations -> is there one for extensionconfigs? -> one patch of the policy's binding
//! ```
//!
//! The controller keeps no state: it reads and compares the binding after every relevant change, and
//! periodically. A disabled binding selects a label that no ExtensionConfig has. `kubectl apply` of the
//! manifest does not change that.

mod binding;
mod reconcile;
mod run;

pub(crate) use run::run;

/// Name of the policies and of their bindings.
pub const NAME: &str = "windlass-extension-configs";
