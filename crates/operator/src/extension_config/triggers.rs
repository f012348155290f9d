//! Which ExtensionConfigs a change concerns.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use windlass_cluster::{Change, Index, Kind, endpoints::SERVICE_NAME, kinds, watch::Watch, worker::Queue};
use windlass_object::{InCluster, ObjectKey, object};
use windlass_trust::injection::KINDS;

use super::{discover::service_of, elsewhere::manager_leases};
use crate::context::Context;

const EXTENSION_CONFIG: Kind = kinds::EXTENSION_CONFIG;

/// ExtensionConfigs, in each version that may be watched.
fn extension_configs() -> impl Iterator<Item = Kind> {
    let target = KINDS
        .iter()
        .find(|target| is_extension_config(&Kind::from(*target)));
    target.into_iter().flat_map(Kind::versions_of)
}

/// Whether it is that of the own cluster: in another, its manager is there, too.
fn is_extension_config(kind: &Kind) -> bool {
    let (group, _) = kind.group_version();
    kind.cluster == InCluster::Local
        && kind.kind == EXTENSION_CONFIG.kind
        && group == EXTENSION_CONFIG.group_version().0
}

/// Starts the watches that are always needed.
pub(super) fn watch_everything(context: &Context) {
    for kind in extension_configs().chain([kinds::SERVICE, kinds::ENDPOINT_SLICE]) {
        context.watches.want(Watch::all(kind));
    }
}

/// Puts every ExtensionConfig into the queue that a change concerns, for ever. Whether Cluster API's manager runs is looked at while
/// there are any.
pub(super) async fn enqueue(context: Arc<Context>, queue: Arc<Queue<ObjectKey>>) {
    let mut changes = context.index.subscribe();
    let look_at_all = || {
        let all = all(&context.index);
        if !all.is_empty() {
            manager_leases().for_each(|watch| context.watches.want(watch));
        }
        all.into_iter().for_each(|config| queue.add(config));
    };
    look_at_all();
    loop {
        match changes.recv().await {
            Ok(change) => {
                let kind = Kind::from_key(&change.key);
                if is_extension_config(&kind) {
                    manager_leases().for_each(|watch| context.watches.want(watch));
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
        // It is renewed all the time.
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
    let calls = |config: &Value| service_of(config).as_ref() == Some(&called);
    let calling = extension_configs().flat_map(|kind| index.select(&kind, calls));
    calling.map(|(key, _)| key).collect()
}
