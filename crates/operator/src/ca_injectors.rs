//! Detects other CA injectors that are running. Windlass then leaves their annotations to them, since two
//! writers of one target would overwrite each other forever.

use std::{collections::HashMap, convert::Infallible, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::{sync::broadcast::error::RecvError, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use windlass_cluster::{Index, Kind, kinds};
use windlass_object::{
    ca_injectors::{CaInjector, CaInjectors},
    object,
};
use windlass_trust::injection::last_injector;

use crate::{
    context::Context,
    injector_lease::{held_lease, leases},
};

/// The CA injectors that have overwritten Windlass's injections, and when this was last observed.
#[derive(Default)]
pub(crate) struct CompetingInjectors(Mutex<HashMap<CaInjector, Instant>>);

/// How often Leases are checked for expiry.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// How long an injector counts as running after it has overwritten an injection. An injector without leader
/// election leaves no other sign.
const RUNNING_FOR: Duration = Duration::from_secs(3600);

/// Starts the watches that show running injectors. Controllers that write targets wait for their first lists.
pub(crate) fn start_watches(context: &Context) {
    for injector in context.index.target_kinds().replaced_injectors() {
        leases(*injector).for_each(|watch| context.watches.start(watch));
    }
}

/// Detects running injectors until `shutdown`.
///
/// # Errors
///
/// None.
pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) -> Result<(), Infallible> {
    let mut changes = context.index.subscribe();
    let mut ticks = tokio::time::interval(CHECK_INTERVAL);
    loop {
        let is_relevant = tokio::select! {
            change = changes.recv() => match change {
                Ok(change) => Kind::from_key(&change.key) == kinds::LEASE,
                Err(RecvError::Lagged(_)) => true,
                Err(RecvError::Closed) => return Ok(()),
            },
            _ = ticks.tick() => true,
            () = shutdown.cancelled() => return Ok(()),
        };
        if is_relevant {
            update_running(&context);
        }
    }
}

/// Updates the set of running injectors in the index.
pub(crate) fn update_running(context: &Context) {
    let (index, now) = (&context.index, context.clock.now());
    let kinds = index.target_kinds();
    let is_running = |injector: &&CaInjector| {
        held_lease(index, **injector, now).is_some() || context.competing_injectors.is_running(**injector)
    };
    let running: CaInjectors = kinds
        .replaced_injectors()
        .iter()
        .filter(is_running)
        .copied()
        .collect();
    if !index.set_running_injectors(running.clone()) {
        return;
    }
    for injector in running.difference(kinds.running_injectors()) {
        warn!(
            %injector,
            "A CA injector is running; Windlass does not answer its annotations: stop it, or start without --answer-annotations-of"
        );
    }
    for injector in kinds.running_injectors().difference(&running) {
        info!(%injector, "A CA injector is no longer running; Windlass answers its annotations");
    }
}

/// Reports whether the CA injector that `target` requests has overwritten its trust bundle; it then counts as
/// running.
pub(crate) fn is_overwritten(context: &Context, target: &Value) -> bool {
    let is_overwritten = context.competing_injectors.record(target, &context.index);
    if is_overwritten {
        update_running(context);
    }
    is_overwritten
}

impl CompetingInjectors {
    /// Records the injector that has overwritten the trust bundle of `target`, if the annotation of that
    /// injector is on the target. Returns whether there is one. Namespaced targets are ignored: a tenant can
    /// write under any field manager.
    fn record(&self, target: &Value, index: &Index) -> bool {
        if object::text(target, "/metadata/namespace").is_some() {
            return false;
        }
        let Some(injector) = last_injector(target, index.target_kinds().replaced_injectors()) else {
            return false;
        };
        self.0.lock().insert(injector, Instant::now());
        true
    }

    fn is_running(&self, injector: CaInjector) -> bool {
        let seen = self.0.lock();
        seen.get(&injector)
            .is_some_and(|seen| seen.elapsed() < RUNNING_FOR)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_object::ca_injectors::CERT_MANAGER_SECRET;

    use super::*;

    #[test]
    fn an_injector_that_overwrites_a_requested_trust_bundle_is_running() {
        let index = Index::with_replaced_injectors(CaInjectors::from([CaInjector::CertManager]));
        let asking = json!({CERT_MANAGER_SECRET: "n/x"});
        for (annotations, by, expected) in [
            (&asking, "cert-manager-cainjector", true),
            (&asking, "cainjector", true),
            (&asking, "kubectl", false),
            (&json!({}), "cert-manager-cainjector", false),
        ] {
            let mut target = json!({
                "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                "metadata": {"name": "a", "annotations": annotations, "managedFields": [
                    {"manager": by, "fieldsV1": {"f:caBundle": {}}, "time": "2026-01-01T00:00:00Z"},
                    {"manager": "windlass-inject", "fieldsV1": {}, "time": "2026-01-01T00:00:01Z"},
                ]},
            });
            let competing_injectors = CompetingInjectors::default();
            assert_eq!(competing_injectors.record(&target, &index), expected, "{by}");
            assert_eq!(
                competing_injectors.is_running(CaInjector::CertManager),
                expected,
                "{by}"
            );
            target["metadata"]["namespace"] = "a-tenant".into();
            assert!(!CompetingInjectors::default().record(&target, &index), "{by}");
        }
    }
}
