//! The ExtensionConfigs of a cluster, once.

use anyhow::{Context, bail};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams},
};
use runtime_hooks::{Registry, in_cluster, registry::RegistrationState};
use serde_json::Value;
use windlass_object::object;

/// ExtensionConfigs, as they are, and whom they register.
pub(super) struct KnownConfigs {
    pub(super) configs: Vec<Value>,
    pub(super) registry: Registry,
}

// === impl KnownConfigs ===

impl KnownConfigs {
    /// Reads all of them.
    ///
    /// # Errors
    ///
    /// When the cluster has no such kind, or does not list them.
    pub(super) async fn read(client: &Client) -> anyhow::Result<Self> {
        let resource = in_cluster::resource(client).await;
        let Some(resource) = resource.context("cannot tell which kinds the cluster serves")? else {
            bail!(
                "the cluster does not serve ExtensionConfig: is Cluster API, or its CustomResourceDefinition, installed?"
            );
        };
        let configs: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let listed = configs.list(&ListParams::default()).await;
        let listed = listed.context("cannot list ExtensionConfigs")?;
        let (api_version, kind) = (&resource.api_version, &resource.kind);
        let configs = listed.items.into_iter().map(|config| {
            let mut config = serde_json::to_value(config).unwrap_or_default();
            // A list says it once for all of its items.
            config["apiVersion"] = api_version.as_str().into();
            config["kind"] = kind.as_str().into();
            config
        });
        Ok(Self::of(configs.collect()))
    }

    /// What `configs` register.
    pub(super) fn of(configs: Vec<Value>) -> Self {
        // Who looks on is not to be stricter than who calls: some callers trust what the system trusts.
        let registry = Registry::in_code().with_system_roots();
        for config in &configs {
            // What cannot be registered is in the states.
            let _ = registry.apply(config);
        }
        Self { configs, registry }
    }

    /// The ExtensionConfig of this name.
    pub(super) fn find(&self, name: &str) -> Option<&Value> {
        let mut configs = self.configs.iter();
        configs.find(|config| object::text(config, "/metadata/name") == Some(name))
    }

    /// Why nothing, or nothing new, of an ExtensionConfig is registered.
    pub(super) fn problem(&self, config: &str) -> Option<String> {
        match self.registry.states().get(config)? {
            RegistrationState::Registered => None,
            RegistrationState::Kept(problem) | RegistrationState::Waiting(problem) => Some(problem.clone()),
        }
    }
}
