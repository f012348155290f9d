//! The Secrets, ConfigMaps and Services of the cluster, watched.

use std::{collections::BTreeMap, sync::Arc};

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kube::{
    Api, Client, Resource, ResourceExt,
    runtime::{
        WatchStreamExt, reflector,
        reflector::{ObjectRef, Store},
        watcher,
    },
};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The entries of a Secret or ConfigMap.
pub(crate) type Entries = BTreeMap<String, Vec<u8>>;

/// Where the entries of Secrets and ConfigMaps come from.
pub(crate) trait Sources {
    /// The entries of a Secret, if there is one.
    fn secret(&self, namespace: &str, name: &str) -> Option<Entries>;

    /// The entries of a ConfigMap, if there is one.
    fn config_map(&self, namespace: &str, name: &str) -> Option<Entries>;
}

/// What the node knows of the cluster.
pub(crate) struct Objects {
    secrets: Store<Secret>,
    config_maps: Store<ConfigMap>,
    services: Store<Service>,
    changes: watch::Sender<()>,
}

impl Objects {
    /// Starts to watch.
    pub(crate) fn watch(client: &Client, tasks: &TaskTracker, stop: &CancellationToken) -> Self {
        let changes = watch::Sender::new(());
        Self {
            secrets: watch_kind(client, &changes, tasks, stop),
            config_maps: watch_kind(client, &changes, tasks, stop),
            services: watch_kind(client, &changes, tasks, stop),
            changes,
        }
    }

    /// Waits until everything was seen once.
    pub(crate) async fn ready(&self) {
        // An error says that the watch ended: then the node does too.
        drop(tokio::join!(
            self.secrets.wait_until_ready(),
            self.config_maps.wait_until_ready(),
            self.services.wait_until_ready()
        ));
    }

    /// Tells of every change from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// A Service, if there is one.
    pub(crate) fn service(&self, namespace: &str, name: &str) -> Option<Arc<Service>> {
        self.services.get(&ObjectRef::new(name).within(namespace))
    }

    /// The Services of a namespace.
    pub(crate) fn services(&self, namespace: &str) -> Vec<Arc<Service>> {
        let all = self.services.state();
        all.into_iter()
            .filter(|service| service.namespace().as_deref() == Some(namespace))
            .collect()
    }
}

impl Sources for Objects {
    fn secret(&self, namespace: &str, name: &str) -> Option<Entries> {
        let secret = self.secrets.get(&ObjectRef::new(name).within(namespace))?;
        Some(
            secret
                .data
                .iter()
                .flatten()
                .map(|(key, value)| (key.clone(), value.0.clone()))
                .collect(),
        )
    }

    fn config_map(&self, namespace: &str, name: &str) -> Option<Entries> {
        let map = self.config_maps.get(&ObjectRef::new(name).within(namespace))?;
        let text = map
            .data
            .iter()
            .flatten()
            .map(|(key, value)| (key.clone(), value.clone().into_bytes()));
        let binary = map
            .binary_data
            .iter()
            .flatten()
            .map(|(key, value)| (key.clone(), value.0.clone()));
        Some(text.chain(binary).collect())
    }
}

fn watch_kind<K>(
    client: &Client,
    changes: &watch::Sender<()>,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) -> Store<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
{
    let (store, writer) = reflector::store();
    let events = watcher(Api::<K>::all(client.clone()), watcher::Config::default())
        .default_backoff()
        .modify(|object| object.managed_fields_mut().clear())
        .reflect(writer);
    let changes = changes.clone();
    tasks.spawn(stop.clone().run_until_cancelled_owned(async move {
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            match event {
                Ok(_) => changes.send_replace(()),
                Err(error) => tracing::debug!(%error, kind = %K::kind(&()), "A watch was interrupted"),
            }
        }
    }));
    store
}
