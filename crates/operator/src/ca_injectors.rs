//! Which of the CA injectors are at work that Windlass stands in for: what they are asked for is left to them then, for two writers
//! of one target would take turns for ever.

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
    other_leader::{held_lease, leases},
};

/// Who was seen to take back what we had written.
#[derive(Default)]
pub(crate) struct Opponents(Mutex<HashMap<CaInjector, Instant>>);

/// How often Leases are looked at that nobody renews.
const LOOK: Duration = Duration::from_secs(5);

/// How long an injector is taken to be at work that has taken back what we had written. One that elects no leader shows by nothing
/// else that it is there.
const SEEN: Duration = Duration::from_secs(3600);

/// Starts the watches by which it is seen who is at work. Whoever writes targets waits for their first lists.
pub(crate) fn watch_everything(context: &Context) {
    for injector in context.index.target_kinds().replaced_injectors() {
        leases(*injector).for_each(|watch| context.watches.want(watch));
    }
}

/// Looks who is at work until `shutdown`.
///
/// # Errors
///
/// None.
pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) -> Result<(), Infallible> {
    let mut changes = context.index.subscribe();
    let mut ticks = tokio::time::interval(LOOK);
    loop {
        let is_of_interest = tokio::select! {
            change = changes.recv() => match change {
                Ok(change) => Kind::from_key(&change.key) == kinds::LEASE,
                Err(RecvError::Lagged(_)) => true,
                Err(RecvError::Closed) => return Ok(()),
            },
            _ = ticks.tick() => true,
            () = shutdown.cancelled() => return Ok(()),
        };
        if is_of_interest {
            look(&context);
        }
    }
}

/// Notes who is at work, as far as it is seen now.
pub(crate) fn look(context: &Context) {
    let (index, now) = (&context.index, context.clock.now());
    let kinds = index.target_kinds();
    let is_at_work = |injector: &&CaInjector| {
        held_lease(index, **injector, now).is_some() || context.opponents.have(**injector)
    };
    let at_work: CaInjectors = kinds.replaced_injectors().iter().filter(is_at_work).copied().collect();
    if !index.note_at_work(at_work.clone()) {
        return;
    }
    for injector in at_work.difference(kinds.running_injectors()) {
        warn!(
            %injector,
            "Leaving its annotations to a CA injector that is at work: stop it, or start without --answer-annotations-of"
        );
    }
    for injector in kinds.running_injectors().difference(&at_work) {
        info!(%injector, "Answering the annotations of a CA injector that is at work no more");
    }
}

/// Whether the CA injector that `target` asks has taken back what that was given. It is known to be at work then.
pub(crate) fn is_taken_back(context: &Context, target: &Value) -> bool {
    let is_theirs = context.opponents.note(target, &context.index);
    if is_theirs {
        look(context);
    }
    is_theirs
}

// === impl Opponents ===

impl Opponents {
    /// Notes who has taken back the trust bundle that `target` was given, if that is one whose annotation it carries. Whether it is.
    /// What is in a namespace says nothing: its tenant may write under any name.
    fn note(&self, target: &Value, index: &Index) -> bool {
        if object::text(target, "/metadata/namespace").is_some() {
            return false;
        }
        let Some(injector) = last_injector(target, index.target_kinds().replaced_injectors()) else {
            return false;
        };
        self.0.lock().insert(injector, Instant::now());
        true
    }

    fn have(&self, injector: CaInjector) -> bool {
        let seen = self.0.lock();
        seen.get(&injector).is_some_and(|seen| seen.elapsed() < SEEN)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_object::ca_injectors::CERT_MANAGER_SECRET;

    use super::*;

    #[test]
    fn an_injector_that_takes_back_what_it_was_asked_for_is_at_work() {
        let index = Index::answering(CaInjectors::from([CaInjector::CertManager]));
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
            let opponents = Opponents::default();
            assert_eq!(opponents.note(&target, &index), expected, "{by}");
            assert_eq!(opponents.have(CaInjector::CertManager), expected, "{by}");
            target["metadata"]["namespace"] = "a-tenant".into();
            assert!(!Opponents::default().note(&target, &index), "{by}");
        }
    }
}
