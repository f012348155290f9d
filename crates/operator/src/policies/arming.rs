//! Keeps the webhook configurations: armed on proof, and disarmed without it. Only the leader does.

use std::{collections::HashSet, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use serde_json::Value;
use thiserror::Error;
use tokio::{sync::broadcast::error::RecvError, task::JoinError};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use windlass_cluster::{
    Kind, RequestError, kinds as cluster_kinds,
    telemetry::chain,
    watch::{Selector, Watch},
    worker::{self, Action, Queue},
};
use windlass_object::{ObjectKey, names, object, patch};

use super::{
    armed::{Armed, ArmedReport},
    configuration::{self, Called, ConfigurationKind, KnownResources},
    entries::{WebhookEntry, entries},
    proof::{self, ServingTrust},
    reduction,
    snapshot::PolicySnapshot,
    store::PolicyStore,
};
use crate::{context::Context, controller};

/// Why the configurations have to be looked at again.
#[derive(Debug, Error)]
#[error(transparent)]
struct ArmPoliciesError(#[from] RequestError);

/// Keeps the webhook configurations.
struct PolicyArmer {
    context: Arc<Context>,
    store: Arc<PolicyStore>,
    called: Called,
    /// The Secret with the certificate that is served.
    secret: ObjectKey,
    report: ArmedReport,
}

/// What a configuration is to be.
struct Desired {
    kind: ConfigurationKind,
    entries: Vec<WebhookEntry>,
    resources: KnownResources,
}

/// How the worker of this controller works: on both configurations in one go.
const WORKER: worker::Settings = worker::Settings::new("policy-configuration", 1);

/// After what time endpoints are asked again that could not answer.
const AGAIN: Duration = Duration::from_secs(1);

/// How often kinds are looked for that are not served yet.
const LOOK: Duration = Duration::from_secs(30);

/// The field manager of the configurations.
const MANAGER: &str = "windlass-policies";

/// Runs the controller until `shutdown`.
///
/// # Errors
///
/// When a reconciliation panicked.
pub(super) fn run(
    context: Arc<Context>,
    store: Arc<PolicyStore>,
    called: Called,
    secret: ObjectKey,
    report: ArmedReport,
    shutdown: CancellationToken,
) -> BoxFuture<'static, Result<(), JoinError>> {
    // Boxed: the body is compiled here once, not again in every program that runs it.
    Box::pin(async move {
        watches(&called, &secret).for_each(|watch| context.watches.want(watch));
        let queue = Arc::new(Queue::new());
        let service = called.key();
        let router = enqueue(context.clone(), store.clone(), service, queue.clone());
        let begin = |_| {
            let armer = Arc::new(PolicyArmer {
                context: context.clone(),
                store,
                called,
                secret,
                report,
            });
            move |_: ObjectKey| armer.clone().reconcile()
        };
        controller::run(
            &context,
            WORKER,
            context.is_target(),
            queue,
            router,
            begin,
            shutdown,
        )
        .await
    })
}

/// What is looked at: no more than may be read with few rights.
fn watches(called: &Called, secret: &ObjectKey) -> impl Iterator<Item = Watch> {
    let named = |key: &ObjectKey| Watch {
        kind: Kind::of(key),
        namespace: key.namespace.clone(),
        selector: Selector::Name(key.name.clone()),
    };
    let slices = Watch::all(cluster_kinds::ENDPOINT_SLICE).within(&called.namespace);
    ConfigurationKind::BOTH
        .into_iter()
        .map(ConfigurationKind::key)
        .chain([called.key(), secret.clone()])
        .map(move |key| named(&key))
        .chain([slices])
}

/// Looks at the configurations whenever something has changed that they are made from, for ever.
async fn enqueue(
    context: Arc<Context>,
    store: Arc<PolicyStore>,
    service: ObjectKey,
    queue: Arc<Queue<ObjectKey>>,
) {
    let mut changes = context.index.subscribe();
    let mut snapshots = store.changes();
    let keys: HashSet<_> = ConfigurationKind::BOTH
        .into_iter()
        .map(ConfigurationKind::key)
        .collect();
    loop {
        queue.add(service.clone());
        loop {
            tokio::select! {
                changed = snapshots.changed() => if changed.is_err() { return } else { break },
                change = changes.recv() => match change {
                    Ok(change) if keys.contains(&change.key) || change.key == service => break,
                    Ok(change) if Kind::of(&change.key) == cluster_kinds::ENDPOINT_SLICE => break,
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }
}

// === impl PolicyArmer ===

impl PolicyArmer {
    async fn reconcile(self: Arc<Self>) -> Result<Action, ArmPoliciesError> {
        let snapshot = self.store.current();
        // It comes again when it is known.
        if !snapshot.is_complete {
            return Ok(Action::AwaitChange);
        }
        if self.is_disarmed() {
            self.disarm().await?;
            let word = format!(
                "disarmed by the annotation {} of {}",
                names::DISARMED,
                self.called.key()
            );
            self.report.say(Armed::default().waiting(word));
            return Ok(Action::AwaitChange);
        }
        let compiled: Vec<_> = snapshot.set.policies().map(AsRef::as_ref).collect();
        let mut desired = Vec::new();
        let mut is_known = true;
        for kind in ConfigurationKind::BOTH {
            let entries = entries(&compiled, kind == ConfigurationKind::Validating);
            let resources = self.resources(&entries).await;
            is_known &= resources.values().all(Option::is_some);
            desired.push(Desired {
                kind,
                entries,
                resources,
            });
        }
        let settled = if is_known {
            Action::AwaitChange
        } else {
            Action::Requeue(LOOK)
        };
        let differing: Vec<_> = desired.iter().filter(|desired| !self.is_there(desired)).collect();
        if differing.is_empty() {
            self.report.say(Armed::all(&snapshot));
            return Ok(settled);
        }
        match self.prove(&snapshot).await {
            Ok(trust) => {
                for desired in differing {
                    self.write(desired, &trust).await?;
                }
                // The watch brings what was written, and this says so then.
                Ok(settled)
            }
            Err(problem) => {
                for desired in differing {
                    self.reduce(desired).await?;
                }
                let last = self.report.last().unwrap_or_default();
                self.report.say(last.waiting(problem));
                Ok(Action::Requeue(AGAIN))
            }
        }
    }

    async fn prove(&self, snapshot: &PolicySnapshot) -> Result<ServingTrust, String> {
        let trust = proof::trust(&self.context, &self.secret)?;
        proof::prove(&self.context, &self.called, &trust, snapshot).await?;
        Ok(trust)
    }

    /// Whether somebody has asked for no configurations.
    fn is_disarmed(&self) -> bool {
        let service = self.context.index.find(&self.called.key());
        service.is_some_and(|service| object::annotation(&service, names::DISARMED) == Some("true"))
    }

    async fn disarm(&self) -> Result<(), RequestError> {
        for key in ConfigurationKind::BOTH.map(ConfigurationKind::key) {
            if let Some(live) = self.context.index.find(&key) {
                let uid = object::text(&live, "/metadata/uid");
                self.context.cluster.delete(&key, uid).await?;
                info!(object = %key, "Disarmed");
            }
        }
        Ok(())
    }

    /// Under which name each kind is served. One of which that cannot be said holds up no other.
    async fn resources(&self, entries: &[WebhookEntry]) -> KnownResources {
        let mut resources = KnownResources::new();
        for kind in configuration::named_kinds(entries) {
            let resource = self.context.cluster.resource(&kind).await;
            let resource = resource.unwrap_or_else(|error| {
                warn!(%kind, error = chain(&error), "Cannot discover a kind that policies name");
                None
            });
            resources.insert((kind.api_version.into_owned(), kind.kind.into_owned()), resource);
        }
        resources
    }

    fn is_there(&self, desired: &Desired) -> bool {
        let live = self.context.index.find(&desired.kind.key());
        live.is_some_and(|live| {
            let annotations = configuration::annotations(&self.called);
            let asks = annotations
                .as_object()
                .into_iter()
                .flatten()
                .all(|(name, value)| object::annotation(&live, name) == value.as_str());
            asks && reduction::are_same(object::items(&live, "/webhooks"), &self.webhooks(desired))
        })
    }

    fn webhooks(&self, desired: &Desired) -> Vec<Value> {
        desired
            .kind
            .webhooks(&desired.entries, &desired.resources, &self.called)
    }

    async fn write(&self, desired: &Desired, trust: &ServingTrust) -> Result<(), RequestError> {
        let key = desired.kind.key();
        let cluster = &self.context.cluster;
        let Some(live) = self.context.index.find(&key) else {
            let object = desired.kind.object(
                &desired.entries,
                &desired.resources,
                &self.called,
                &trust.ca_bundle,
            );
            cluster.create(&object, MANAGER).await?;
            info!(object = %key, webhooks = object::items(&object, "/webhooks").len(), "Armed");
            return Ok(());
        };
        let there = object::items(&live, "/webhooks");
        let webhooks = reduction::with_bundles(self.webhooks(desired), there, &trust.ca_bundle);
        let count = webhooks.len();
        self.put(&key, &live, webhooks.into()).await?;
        info!(object = %key, webhooks = count, "Armed");
        Ok(())
    }

    /// Takes away what is not needed any more.
    async fn reduce(&self, desired: &Desired) -> Result<(), RequestError> {
        let key = desired.kind.key();
        let Some(live) = self.context.index.find(&key) else {
            return Ok(());
        };
        let there = object::items(&live, "/webhooks");
        let reduced = reduction::reduced(there, &self.webhooks(desired));
        if reduced == there {
            return Ok(());
        }
        self.put(&key, &live, reduced.into()).await?;
        info!(object = %key, "Disarmed what is not needed any more");
        Ok(())
    }

    /// Puts webhooks into a configuration, unless somebody else has written it since.
    async fn put(&self, key: &ObjectKey, live: &Value, webhooks: Value) -> Result<(), RequestError> {
        let mut change = patch::guarded(
            &[("/metadata/resourceVersion", &live["metadata"]["resourceVersion"])],
            "/webhooks",
            &webhooks,
        );
        let annotations = configuration::annotations(&self.called);
        change.0.extend(patch::changed_entries(
            live,
            "/metadata/annotations",
            &annotations,
        ));
        self.context.cluster.patch(key, &change, MANAGER).await?;
        Ok(())
    }
}

// === impl Called ===

impl Called {
    /// The Service.
    pub(super) fn key(&self) -> ObjectKey {
        cluster_kinds::SERVICE.object(Some(&self.namespace), self.service)
    }
}
