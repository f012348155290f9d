//! The controller of policies, which writes their status and events. Only the leader runs it.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;
use thiserror::Error;
use tokio::{sync::broadcast::error::RecvError, task::JoinError};
use tokio_util::sync::CancellationToken;
use windlass_cluster::{
    Kind, RequestError,
    kinds::{NAMESPACE, SECRET},
    watch::Watch,
    worker::{self, Action, Queue},
};
use windlass_object::{ObjectKey, names};

use super::{
    armed_policies::ArmingReport,
    armer,
    configuration::PolicyService,
    kinds,
    references::{self, References},
    snapshot::PolicySnapshot,
    status::{self, ArmingState},
    store::PolicyStore,
};
use crate::{
    admission::AdmissionService,
    announced::{Announced, merge_patch},
    context::Context,
    controller,
};

/// Why the status of a policy is written again later.
#[derive(Debug, Error)]
enum ReportPolicyError {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("cannot encode the status of a policy")]
    Encode(#[from] serde_json::Error),
}

/// Writes the status of policies.
struct PolicyReporter {
    context: Arc<Context>,
    store: Arc<PolicyStore>,
    report: ArmingReport,
    references: Arc<References>,
    announced: Announced,
}

const WORKER: worker::Settings = worker::Settings::new("policy", 4);

/// Runs the controllers of policies and of the webhook configurations until `shutdown`. The webhooks call
/// `service` for objects that `objects`, a LabelSelector, selects.
///
/// # Errors
///
/// When a reconciliation panicked.
pub(crate) fn run(
    context: Arc<Context>,
    store: Arc<PolicyStore>,
    references: Arc<References>,
    service: AdmissionService,
    objects: Value,
    shutdown: CancellationToken,
) -> BoxFuture<'static, Result<(), JoinError>> {
    // Boxed so that the body is compiled once, not in every program that runs it.
    Box::pin(async move {
        for watch in kinds::watches().chain([Watch::all(NAMESPACE)]) {
            context.watches.start(watch);
        }
        let report = ArmingReport::new();
        let policy_service = PolicyService {
            namespace: context.namespace.clone(),
            service: service.name,
            objects,
        };
        let secret = SECRET.object(Some(&context.namespace), service.secret);
        let arming = armer::run(
            context.clone(),
            store.clone(),
            policy_service,
            secret,
            report.clone(),
            shutdown.clone(),
        );
        let queue = Arc::new(Queue::new());
        let router = enqueue(
            context.clone(),
            store.clone(),
            report.clone(),
            references.changes(),
            queue.clone(),
        );
        let begin = |_| {
            let reporter = Arc::new(PolicyReporter {
                context: context.clone(),
                store,
                report,
                references,
                announced: Announced::default(),
            });
            move |policy: ObjectKey| reporter.clone().reconcile(policy)
        };
        let reporting = controller::run(
            &context,
            WORKER,
            context.is_target(),
            queue,
            router,
            begin,
            shutdown,
        );
        tokio::try_join!(arming, reporting)?;
        Ok(())
    })
}

/// Enqueues every policy that was changed or compiled, and all policies when an arming, suspension or
/// readable kind changes.
async fn enqueue(
    context: Arc<Context>,
    store: Arc<PolicyStore>,
    report: ArmingReport,
    mut data: tokio::sync::watch::Receiver<u64>,
    queue: Arc<Queue<ObjectKey>>,
) {
    let mut changes = context.index.subscribe();
    let mut snapshots = store.changes();
    let mut reports = report.changes();
    let mut suspensions = store.suspensions();
    let mut known = Arc::<PolicySnapshot>::default();
    loop {
        let current = snapshots.borrow_and_update().clone();
        for (key, state) in &current.policies {
            let is_known = known
                .policies
                .get(key)
                .is_some_and(|known| Arc::ptr_eq(known, state));
            if !is_known {
                queue.add(key.clone());
            }
        }
        known = current;
        tokio::select! {
            changed = snapshots.changed() => if changed.is_err() { return },
            changed = reports.changed() => match changed {
                Ok(()) => known = Arc::default(),
                Err(_) => return,
            },
            changed = suspensions.changed() => match changed {
                Ok(()) => known = Arc::default(),
                Err(_) => return,
            },
            changed = data.changed() => match changed {
                Ok(()) => known = Arc::default(),
                Err(_) => return,
            },
            change = changes.recv() => match change {
                Ok(change) if kinds::is_policy(&Kind::from_key(&change.key)) => queue.add(change.key),
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => known = Arc::default(),
                Err(RecvError::Closed) => return,
            },
        }
    }
}

impl PolicyReporter {
    async fn reconcile(self: Arc<Self>, key: ObjectKey) -> Result<Action, ReportPolicyError> {
        let Some(object) = self.context.index.find(&key) else {
            self.announced.forget(&key);
            return Ok(Action::AwaitChange);
        };
        let snapshot = self.store.current();
        // The compiled policy enqueues it again.
        let Some(state) = snapshot.state_of(&key, &object) else {
            return Ok(Action::AwaitChange);
        };
        // The first report of the armed policies enqueues it again.
        let Some(armed) = self.report.last() else {
            return Ok(Action::AwaitChange);
        };
        let unread = self.references.data_problem(&object);
        let arming = if let Some(unread) = &unread {
            ArmingState::Waiting(Some(unread))
        } else if armed.contains(&key, &state.version) {
            ArmingState::Done
        } else {
            ArmingState::Waiting(armed.problem.as_deref())
        };
        let problems = state.problems();
        let rule_problems = match problems.as_slice() {
            [] => "all rules can be evaluated".to_owned(),
            [problem] => problem.to_string(),
            [first, rest @ ..] => format!("{first}; and {} more", rest.len()),
        };
        let suspended = state.suspension_cause().map(|cause| cause.to_string());
        let message = suspended
            .as_ref()
            .filter(|_| problems.is_empty())
            .unwrap_or(&rule_problems);
        if self.announced.is_news(&key, message, None) {
            if !problems.is_empty() {
                self.context.events.warn(&object, "Compile", "Invalid", message);
            } else if suspended.is_some() {
                self.context
                    .events
                    .warn(&object, "Evaluate", "Suspended", message);
            }
        }
        let known = status::read(&object);
        let now = self.context.clock.now();
        let mut next = status::updated(&object, &known, state, arming, now);
        references::record_readability(&mut next, &object, &self.references, now);
        if next == known {
            return Ok(Action::AwaitChange);
        }
        let patch = merge_patch(&known, &next)?;
        match self
            .context
            .cluster
            .patch_status(&key, &patch, names::STATUS)
            .await
        {
            Ok(_) => Ok(Action::AwaitChange),
            // The policy was deleted.
            Err(error) if error.is_not_found() => Ok(Action::AwaitChange),
            Err(error) => Err(error.into()),
        }
    }
}
