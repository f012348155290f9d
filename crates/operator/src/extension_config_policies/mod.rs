//! Admission policies for ExtensionConfigs, which a cluster has whose admin applied `manifests/extension-configs.yaml`: switched off
//! where Cluster API's own webhooks are there, which fill in and refuse the same in other words.
//!
//! ```text
//! webhook configurations -> is there one for extensionconfigs? -> one patch of the policy's binding
//! ```
//!
//! Nothing is remembered: the binding is read and compared whenever something concerns it, and once in a while. A binding is off
//! while it selects a label that no ExtensionConfig has. `kubectl apply` of the manifest leaves that as it is.

mod binding;
mod reconcile;
mod run;

pub(crate) use run::run;

/// The name of the policies and of their bindings.
pub const NAME: &str = "windlass-extension-configs";
