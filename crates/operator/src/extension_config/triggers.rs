//! Which ExtensionConfigs a change affects.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use windlass_cluster::{Change, Index, Kind, endpoints::SERVICE_NAME, kinds, watch::Watch, worker::Queue};
use windlass_object::{InCluster, ObjectKey, object};
use windlass_trust::injection::KINDS;

use super::{discover::called_service, other_manager::manager_leases};
use crate::context::Context;

const EXTENSION_CONFIG: Kind = kinds::EXTENSION_CONFIG;

/// Kind ExtensionConfig in each version that may be watched.
fn extension_configs() -> impl Iterator<Item = Kind> {
    let target = KINDS
        .iter()
        .find(|target| is_extension_config(&Kind::from(*target)));
    target.into_iter().flat_map(Kind::versions_of)
}

/// Reports whether `kind` is ExtensionConfig in the local cluster. In another cluster, the manager of that
/// cluster is responsible.
fn is_extension_config(kind: &Kind) -> bool {
    let (group, _) = kind.group_version();
    kind.cluster == InCluster::Local
        && kind.kind == EXTENSION_CONFIG.kind
        && group == EXTENSION_CONFIG.group_version().0
}

/// Starts the watches that are always required.
pub(super) fn watch_everything(context: &Context) {
    for kind in extension_configs().chain([kinds::SERVICE, kinds::ENDPOINT_SLICE]) {
        context.watches.start(Watch::all(kind));
    }
}

/// Forever adds the ExtensionConfigs that a change affects to the queue. Watches for Cluster API's manager as
/// long as there are ExtensionConfigs.
pub(super) async fn enqueue(context: Arc<Context>, queue: Arc<Queue<ObjectKey>>) {
    let mut changes = context.index.subscribe();
    let look_at_all = || {
        let all = all(&context.index);
        if !all.is_empty() {
            manager_leases().for_each(|watch| context.watches.start(watch));
        }
        all.into_iter().for_each(|config| queue.add(config));
    };
    look_at_all();
    loop {
        match changes.recv().await {
            Ok(change) => {
                let kind = Kind::from_key(&change.key);
                if is_extension_config(&kind) {
                    manager_leases().for_each(|watch| context.watches.start(watch));
                }
                affected(&context.index, &change)
                    .into_iter()
                    .for_each(|config| queue.add(config));
            }
            Err(RecvError::Lagged(_)) => look_at_all(),
            Err(RecvError::Closed) => return,
        }
    }
}

fn all(index: &Index) -> Vec<ObjectKey> {
    let all = extension_configs().flat_map(|kind| index.indexed(&kind));
    all.map(|(key, _)| key).collect()
}

fn affected(index: &Index, change: &Change) -> Vec<ObjectKey> {
    let key = &change.key;
    let kind = Kind::from_key(key);
    if is_extension_config(&kind) {
        return vec![key.clone()];
    }
    if kind == kinds::LEASE {
        // A Lease changes at every renewal.
        return match change.differs_in(&["/spec/holderIdentity", "/metadata/uid"]) {
            true => all(index),
            false => Vec::new(),
        };
    }
    let service = if kind == kinds::SERVICE {
        key.name.clone()
    } else if kind == kinds::ENDPOINT_SLICE {
        let named = change
            .versions()
            .find_map(|slice| object::label(&slice, SERVICE_NAME).map(str::to_owned));
        named.unwrap_or_default()
    } else {
        return Vec::new();
    };
    let called = kinds::SERVICE.object(key.namespace.as_deref(), &service);
    let calls = |config: &Value| called_service(config).as_ref() == Some(&called);
    let calling = extension_configs().flat_map(|kind| index.select(&kind, calls));
    calling.map(|(key, _)| key).collect()
}
