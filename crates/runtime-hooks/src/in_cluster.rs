//! Reads ExtensionConfigs and namespaces of a cluster.

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

/// Reads the labels of namespaces from the API server.
#[derive(Clone)]
pub struct ClusterNamespaces {
    namespaces: Api<Namespace>,
}

/// The group of ExtensionConfigs.
const GROUP: &str = "runtime.cluster.x-k8s.io";

const KIND: &str = "ExtensionConfig";

/// How long to wait before ExtensionConfigs are discovered again, if they are not served or the API server
/// does not answer.
const LOOK: Duration = Duration::from_secs(30);

/// Keeps a registry in sync with the ExtensionConfigs of a cluster, until the future is dropped. It writes
/// nothing to the cluster. While the kind is not served, there are no handlers.
pub async fn follow_extension_configs(client: Client, registry: Arc<Registry>) {
    loop {
        match resource(&client).await {
            Ok(Some(resource)) => follow(&client, &resource, &registry).await,
            Ok(None) => {
                registry.retain(|_| false);
                registry.mark_listed();
            }
            Err(error) => warn!(%error, "Cannot discover whether ExtensionConfigs are served"),
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Returns the version of ExtensionConfigs that the API server prefers; [`None`] if it serves none.
///
/// # Errors
///
/// When the API server cannot be queried.
pub async fn resource(client: &Client) -> Result<Option<ApiResource>, kube::Error> {
    let groups = client.list_api_groups().await?;
    if !groups.groups.iter().any(|group| group.name == GROUP) {
        return Ok(None);
    }
    let group = discovery::group(client, GROUP).await?;
    Ok(group.recommended_kind(KIND).map(|(resource, _)| resource))
}

/// Returns when the kind is no longer served.
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
                info!("ExtensionConfigs are no longer served");
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

impl ClusterNamespaces {
    /// Creates a reader that gets each namespace on demand.
    pub fn new(client: Client) -> Self {
        Self {
            namespaces: Api::all(client),
        }
    }
}

impl NamespaceLabels for ClusterNamespaces {
    fn labels(&self, namespace: String) -> BoxFuture<'_, Result<Value, NamespaceError>> {
        Box::pin(async move {
            // A request with an empty name would list all namespaces.
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
