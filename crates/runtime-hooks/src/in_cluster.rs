//! ExtensionConfigs and namespaces of a cluster, read only.

use std::{sync::Arc, time::Duration};

use futures::{TryStreamExt, future::BoxFuture, pin_mut};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, PartialObjectMeta},
    discovery,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use serde_json::{Value, json};
use tracing::{debug, info, warn};

use crate::{
    Registry,
    client::{NamespaceError, NamespaceLabels},
};

/// Namespaces as the API server has them now.
#[derive(Clone)]
pub struct ClusterNamespaces {
    namespaces: Api<Namespace>,
}

/// The group of ExtensionConfigs.
const GROUP: &str = "runtime.cluster.x-k8s.io";

const KIND: &str = "ExtensionConfig";

/// How often a cluster is asked that has no ExtensionConfigs, or does not answer.
const LOOK: Duration = Duration::from_secs(30);

/// Keeps a registry as the ExtensionConfigs of a cluster have it, until it is dropped. Nothing is ever written. Where the kind is
/// not served there are no handlers, until it is.
pub async fn follow_extension_configs(client: Client, registry: Arc<Registry>) {
    loop {
        match resource(&client).await {
            Ok(Some(resource)) => follow(&client, &resource, &registry).await,
            Ok(None) => {
                registry.retain(|_| false);
                registry.mark_listed();
            }
            Err(error) => warn!(%error, "Cannot tell whether ExtensionConfigs are served"),
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The version of ExtensionConfigs that the API server prefers; [`None`] where it serves none.
///
/// # Errors
///
/// When it does not say.
pub async fn resource(client: &Client) -> Result<Option<ApiResource>, kube::Error> {
    let groups = client.list_api_groups().await?;
    if !groups.groups.iter().any(|group| group.name == GROUP) {
        return Ok(None);
    }
    let group = discovery::group(client, GROUP).await?;
    Ok(group.recommended_kind(KIND).map(|(resource, _)| resource))
}

/// Returns when the kind is not served any more.
async fn follow(client: &Client, resource: &ApiResource, registry: &Registry) {
    let configs: Api<DynamicObject> = Api::all_with(client.clone(), resource);
    let events = watcher(configs, watcher::Config::default()).default_backoff();
    pin_mut!(events);
    let mut listed = Vec::new();
    loop {
        match events.try_next().await {
            Ok(Some(Event::Init)) => listed.clear(),
            Ok(Some(Event::InitApply(config))) => {
                listed.push(config.name_any());
                apply(registry, config);
            }
            Ok(Some(Event::InitDone)) => {
                registry.retain(|name| listed.iter().any(|listed| listed == name));
                registry.mark_listed();
            }
            Ok(Some(Event::Apply(config))) => apply(registry, config),
            Ok(Some(Event::Delete(config))) => registry.remove(&config.name_any()),
            Ok(None) => return,
            Err(error) if is_absent(&error) => {
                info!("ExtensionConfigs are not served any more");
                return;
            }
            Err(error) => warn!(%error, "Cannot watch ExtensionConfigs"),
        }
    }
}

fn apply(registry: &Registry, config: DynamicObject) {
    let name = config.name_any();
    let config = serde_json::to_value(config).unwrap_or_default();
    if let Err(error) = registry.apply(&config) {
        debug!(extension_config = name, %error, "Not registered");
    }
}

fn is_absent(error: &watcher::Error) -> bool {
    use watcher::Error::{InitialListFailed, WatchFailed, WatchStartFailed};
    let (InitialListFailed(error) | WatchStartFailed(error) | WatchFailed(error)) = error else {
        return false;
    };
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

// === impl ClusterNamespaces ===

impl ClusterNamespaces {
    /// Those of a cluster, of which each is got when it is asked for.
    pub fn new(client: Client) -> Self {
        Self {
            namespaces: Api::all(client),
        }
    }
}

impl NamespaceLabels for ClusterNamespaces {
    fn labels(&self, namespace: String) -> BoxFuture<'_, Result<Value, NamespaceError>> {
        Box::pin(async move {
            // The API server has no name that is empty, and would list all.
            if namespace.is_empty() {
                return Err(NamespaceError::NotFound(namespace));
            }
            let found: Result<Option<PartialObjectMeta<Namespace>>, _> =
                self.namespaces.get_metadata_opt(&namespace).await;
            match found {
                Ok(Some(found)) => Ok(json!(found.metadata.labels.unwrap_or_default())),
                Ok(None) => Err(NamespaceError::NotFound(namespace)),
                Err(error) => Err(NamespaceError::Read {
                    namespace,
                    problem: error.to_string(),
                }),
            }
        })
    }
}
