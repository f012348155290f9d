//! Keeps the webhook configurations: adds to them on proof, and prunes them without it. Only the leader
//! writes them.

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
    armed_policies::{ArmedPolicies, ArmingReport},
    configuration::{self, ConfigurationKind, KnownResources, PolicyService},
    entries::{WebhookEntry, entries},
    proof::{self, ServingTrust},
    prune,
    snapshot::PolicySnapshot,
    store::PolicyStore,
};
use crate::{context::Context, controller};

/// Why the reconciliation of the configurations is retried.
#[derive(Debug, Error)]
#[error(transparent)]
struct ArmPoliciesError(#[from] RequestError);

struct PolicyArmer {
    context: Arc<Context>,
    store: Arc<PolicyStore>,
    policy_service: PolicyService,
    /// The Secret with the serving certificate.
    secret: ObjectKey,
    report: ArmingReport,
}

/// The desired content of one configuration.
struct Desired {
    kind: ConfigurationKind,
    entries: Vec<WebhookEntry>,
    resources: KnownResources,
}

/// Worker settings of this controller: one reconciliation covers both configurations.
const WORKER: worker::Settings = worker::Settings::new("policy-configuration", 1);

/// How long to wait before endpoints that failed the proof are probed again.
const PROOF_PAUSE: Duration = Duration::from_secs(1);

/// How often discovery is repeated for kinds that are not served yet.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(30);

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
    policy_service: PolicyService,
    secret: ObjectKey,
    report: ArmingReport,
    shutdown: CancellationToken,
) -> BoxFuture<'static, Result<(), JoinError>> {
    // Boxed so that the body is compiled once, not in every program that runs it.
    Box::pin(async move {
        watches(&policy_service, &secret).for_each(|watch| context.watches.start(watch));
        let queue = Arc::new(Queue::new());
        let service = policy_service.key();
        let router = enqueue(context.clone(), store.clone(), service, queue.clone());
        let begin = |_| {
            let armer = Arc::new(PolicyArmer {
                context: context.clone(),
                store,
                policy_service,
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

/// Returns the watches of the controller, which need only narrow rights.
fn watches(policy_service: &PolicyService, secret: &ObjectKey) -> impl Iterator<Item = Watch> {
    let named = |key: &ObjectKey| Watch {
        kind: Kind::from_key(key),
        namespace: key.namespace.clone(),
        selector: Selector::Name(key.name.clone()),
    };
    let slices = Watch::all(cluster_kinds::ENDPOINT_SLICE).within(&policy_service.namespace);
    ConfigurationKind::BOTH
        .into_iter()
        .map(ConfigurationKind::key)
        .chain([policy_service.key(), secret.clone()])
        .map(move |key| named(&key))
        .chain([slices])
}

/// Requests a reconciliation whenever something changes that the configurations depend on. Never returns
/// while the index lives.
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
                    Ok(change) if Kind::from_key(&change.key) == cluster_kinds::ENDPOINT_SLICE => break,
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }
}

impl PolicyArmer {
    async fn reconcile(self: Arc<Self>) -> Result<Action, ArmPoliciesError> {
        let snapshot = self.store.current();
        // A change of the snapshot triggers the next reconciliation.
        if !snapshot.is_complete {
            return Ok(Action::AwaitChange);
        }
        if self.is_disarmed() {
            self.disarm().await?;
            let problem = format!(
                "disarmed by the annotation {} of {}; remove the annotation to send requests to policies again",
                names::DISARMED,
                self.policy_service.key()
            );
            self.report
                .publish(ArmedPolicies::default().with_problem(problem));
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
            Action::Requeue(DISCOVERY_INTERVAL)
        };
        let differing: Vec<_> = desired
            .iter()
            .filter(|desired| !self.is_up_to_date(desired))
            .collect();
        if differing.is_empty() {
            self.report.publish(ArmedPolicies::all(&snapshot));
            return Ok(settled);
        }
        match self.prove(&snapshot).await {
            Ok(trust) => {
                for desired in differing {
                    self.write(desired, &trust).await?;
                }
                // The watch reports the written configuration, and the next reconciliation publishes it.
                Ok(settled)
            }
            Err(problem) => {
                for desired in differing {
                    self.prune(desired).await?;
                }
                let last = self.report.last().unwrap_or_default();
                self.report.publish(last.with_problem(problem));
                Ok(Action::Requeue(PROOF_PAUSE))
            }
        }
    }

    async fn prove(&self, snapshot: &PolicySnapshot) -> Result<ServingTrust, String> {
        let trust = proof::serving_trust(&self.context, &self.secret)?;
        proof::prove(&self.context, &self.policy_service, &trust, snapshot).await?;
        Ok(trust)
    }

    /// Reports whether the annotation on the Service disarms all policies.
    fn is_disarmed(&self) -> bool {
        let service = self.context.index.find(&self.policy_service.key());
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

    /// Returns the plural name under which each kind is served. A kind whose discovery fails is logged and
    /// does not delay the others.
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

    fn is_up_to_date(&self, desired: &Desired) -> bool {
        let live = self.context.index.find(&desired.kind.key());
        live.is_some_and(|live| {
            let annotations = configuration::annotations(&self.policy_service);
            let asks = annotations
                .as_object()
                .into_iter()
                .flatten()
                .all(|(name, value)| object::annotation(&live, name) == value.as_str());
            asks && prune::are_equal(object::items(&live, "/webhooks"), &self.webhooks(desired))
        })
    }

    fn webhooks(&self, desired: &Desired) -> Vec<Value> {
        desired
            .kind
            .webhooks(&desired.entries, &desired.resources, &self.policy_service)
    }

    async fn write(&self, desired: &Desired, trust: &ServingTrust) -> Result<(), RequestError> {
        let key = desired.kind.key();
        let cluster = &self.context.cluster;
        let Some(live) = self.context.index.find(&key) else {
            let object = desired.kind.object(
                &desired.entries,
                &desired.resources,
                &self.policy_service,
                &trust.ca_bundle,
            );
            cluster.create(&object, MANAGER).await?;
            info!(object = %key, webhooks = object::items(&object, "/webhooks").len(), "Armed");
            return Ok(());
        };
        let current = object::items(&live, "/webhooks");
        let webhooks = prune::with_ca_bundles(self.webhooks(desired), current, &trust.ca_bundle);
        let count = webhooks.len();
        self.replace_webhooks(&key, &live, webhooks.into()).await?;
        info!(object = %key, webhooks = count, "Armed");
        Ok(())
    }

    /// Removes webhooks and rules that are no longer needed.
    async fn prune(&self, desired: &Desired) -> Result<(), RequestError> {
        let key = desired.kind.key();
        let Some(live) = self.context.index.find(&key) else {
            return Ok(());
        };
        let current = object::items(&live, "/webhooks");
        let pruned = prune::pruned(current, &self.webhooks(desired));
        if pruned == current {
            return Ok(());
        }
        self.replace_webhooks(&key, &live, pruned.into()).await?;
        info!(object = %key, "Removed webhooks that are no longer needed");
        Ok(())
    }

    /// Replaces the webhooks of a configuration, unless another client has changed it since `live` was read.
    async fn replace_webhooks(
        &self,
        key: &ObjectKey,
        live: &Value,
        webhooks: Value,
    ) -> Result<(), RequestError> {
        let mut change = patch::guarded(
            &[("/metadata/resourceVersion", &live["metadata"]["resourceVersion"])],
            "/webhooks",
            &webhooks,
        );
        let annotations = configuration::annotations(&self.policy_service);
        change.0.extend(patch::changed_entries(
            live,
            "/metadata/annotations",
            &annotations,
        ));
        self.context.cluster.patch(key, &change, MANAGER).await?;
        Ok(())
    }
}

impl PolicyService {
    pub(super) fn key(&self) -> ObjectKey {
        cluster_kinds::SERVICE.object(Some(&self.namespace), self.service)
    }
}
