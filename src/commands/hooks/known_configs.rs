//! The ExtensionConfigs of a cluster.

use anyhow::{Context, bail};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams},
};
use runtime_hooks::{Registry, in_cluster, registry::RegistrationState};
use serde_json::Value;
use windlass_object::object;

/// ExtensionConfigs, and the handlers that they register.
pub(super) struct KnownConfigs {
    pub(super) configs: Vec<Value>,
    pub(super) registry: Registry,
}

impl KnownConfigs {
    /// Lists all ExtensionConfigs.
    ///
    /// # Errors
    ///
    /// When the cluster does not serve or list them.
    pub(super) async fn read(client: &Client) -> anyhow::Result<Self> {
        let resource = in_cluster::resource(client).await;
        let Some(resource) = resource.context("cannot list the kinds that the cluster serves")? else {
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
            // Items of a list have no apiVersion and kind.
            config["apiVersion"] = api_version.as_str().into();
            config["kind"] = kind.as_str().into();
            config
        });
        Ok(Self::from_objects(configs.collect()))
    }

    /// Returns the handlers that `configs` register.
    pub(super) fn from_objects(configs: Vec<Value>) -> Self {
        // Accepts the system's CAs, as some callers do: this command must not be stricter.
        let registry = Registry::listed().with_system_roots();
        for config in &configs {
            // Errors are in the registration states.
            let _ = registry.apply(config);
        }
        Self { configs, registry }
    }

    /// Returns the ExtensionConfig of this name.
    pub(super) fn find(&self, name: &str) -> Option<&Value> {
        let mut configs = self.configs.iter();
        configs.find(|config| object::text(config, "/metadata/name") == Some(name))
    }

    /// Returns why the current spec of an ExtensionConfig is not registered.
    pub(super) fn problem(&self, config: &str) -> Option<String> {
        match self.registry.states().get(config)? {
            RegistrationState::Registered => None,
            RegistrationState::Kept(problem) | RegistrationState::Waiting(problem) => Some(problem.clone()),
        }
    }
}
