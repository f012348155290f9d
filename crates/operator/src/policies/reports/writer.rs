//! Writes reports. Every replica runs a writer.

use std::{pin::pin, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use jiff::SignedDuration;
use tokio::{sync::broadcast::error::RecvError, task::JoinError, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::debug;
use windlass_cluster::{
    Cluster, Kind, RequestError,
    kinds::{CLUSTER_POLICY_REPORT, CUSTOM_RESOURCE_DEFINITION, POLICY_REPORT},
    watch::{Selector, Watch},
    worker::{self, Action},
};
use windlass_object::{ObjectKey, names, object};

use super::{
    audited_rules::AuditedRules,
    ledger::AuditLedger,
    policy_report::{MANAGED_BY, PolicyReport},
};
use crate::{context::Context, policies::store::PolicyStore};

/// Updates reports with the latest audit results.
struct ReportWriter {
    context: Arc<Context>,
    /// Not fenced by the lease: standby replicas evaluate policies, too.
    cluster: Cluster,
    store: Arc<PolicyStore>,
    ledger: Arc<AuditLedger>,
}

const REPORTS: [Kind; 2] = [POLICY_REPORT, CLUSTER_POLICY_REPORT];

/// The CustomResourceDefinitions of reports, which may be installed or deleted at any time.
pub const REPORT_DEFINITIONS: [&str; 2] = [
    "clusterpolicyreports.wgpolicyk8s.io",
    "policyreports.wgpolicyk8s.io",
];

const WORKER: worker::Settings = worker::Settings::new("policy-report", 4);

/// The pause before a report is retried while its kind is not listed.
const UNLISTED_PAUSE: Duration = Duration::from_secs(5);

/// The pause after a conflict.
const CONFLICT_PAUSE: Duration = Duration::from_millis(500);

/// The minimum age of a result that is removed with its policy: another replica may know a newer policy than
/// the leader.
const MINIMUM_AGE: SignedDuration = SignedDuration::from_secs(5);

/// Returns the watch of Windlass's reports of a kind; `None` for other kinds.
pub(super) fn report_watch(kind: &Kind) -> Option<Watch> {
    let (label, value) = MANAGED_BY;
    let selector = Selector::Label(format!("{label}={value}"));
    REPORTS
        .contains(kind)
        .then(|| Watch::all(kind.clone()).selected(selector))
}

/// Writes reports through `cluster`, whether or not this process leads, until `shutdown`.
///
/// # Errors
///
/// When a reconciliation panicked.
pub(crate) fn write_reports(
    context: Arc<Context>,
    cluster: Cluster,
    store: Arc<PolicyStore>,
    ledger: Arc<AuditLedger>,
    shutdown: CancellationToken,
) -> BoxFuture<'static, Result<(), JoinError>> {
    // Boxed so that the body is compiled once, not in every program that runs it.
    Box::pin(async move {
        // CustomResourceDefinitions show when the kinds are served.
        let definitions = REPORT_DEFINITIONS
            .map(|name| Watch::all(CUSTOM_RESOURCE_DEFINITION).selected(Selector::Name(name.to_owned())));
        for watch in REPORTS.iter().filter_map(report_watch).chain(definitions) {
            context.watches.start(watch);
        }
        let (queue, metrics) = (ledger.queue().clone(), context.metrics.clone());
        let writer = Arc::new(ReportWriter {
            context,
            cluster,
            store,
            ledger,
        });
        let router = writer.clone().enqueue();
        let reconcile = move |report: ObjectKey| writer.clone().reconcile(report);
        tokio::select! {
            result = worker::run(WORKER, queue, metrics, reconcile, shutdown) => result,
            () = router => Ok(()),
        }
    })
}

impl ReportWriter {
    /// Enqueues changed reports for which this process has results. The leader also enqueues reports when a
    /// policy may have been deleted.
    async fn enqueue(self: Arc<Self>) {
        let mut changes = self.context.index.subscribe();
        let mut snapshots = self.store.changes();
        let mut acquired = pin!(self.context.leadership.wait_until_acquired());
        let mut is_leading = false;
        loop {
            tokio::select! {
                _ = &mut acquired, if !is_leading => {
                    is_leading = true;
                    self.enqueue_all();
                }
                changed = snapshots.changed() => match changed {
                    Ok(()) if is_leading => self.enqueue_all(),
                    Ok(()) => {}
                    Err(_) => return,
                },
                change = changes.recv() => match change {
                    Ok(change) if REPORTS.contains(&Kind::from_key(&change.key)) => {
                        let is_there = change.after.is_some();
                        if is_there && (is_leading || self.ledger.contains(&change.key)) {
                            self.ledger.queue().add(change.key);
                        }
                    }
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => self.enqueue_all(),
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }

    fn enqueue_all(&self) {
        for kind in &REPORTS {
            for report in self.context.index.indexed(kind).into_keys() {
                self.ledger.queue().add(report);
            }
        }
    }

    fn is_leader(&self) -> bool {
        self.context.leadership.check().is_ok()
    }

    async fn reconcile(self: Arc<Self>, key: ObjectKey) -> Result<Action, RequestError> {
        let index = &self.context.index;
        let Some(watch) = report_watch(&Kind::from_key(&key)) else {
            return Ok(Action::AwaitChange);
        };
        if index.is_absent(&watch) {
            self.ledger.forget(&key);
            return Ok(Action::AwaitChange);
        }
        if !index.is_complete(&watch) {
            return Ok(Action::Requeue(UNLISTED_PAUSE));
        }
        let noted = self.ledger.find(&key);
        let wait = noted
            .as_ref()
            .map(|noted| noted.due.saturating_duration_since(Instant::now()));
        if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
            return Ok(Action::Requeue(wait));
        }
        let report = index.find(&key);
        let known = report.as_deref().map(PolicyReport::read).unwrap_or_default();
        let mut rules = known.rules.clone();
        if let Some(noted) = &noted {
            rules.fold(noted.rules.clone());
        }
        let again = self.remove_outdated(&mut rules);
        let next = known.updated(rules);
        let written = match (&report, &noted) {
            (Some(report), _) if next.rules.is_empty() => {
                let uid = object::text(report, "/metadata/uid");
                self.cluster.delete(&key, uid).await
            }
            (Some(_), _) if next.is_covered_by(&known) => Ok(()),
            (Some(report), _) => {
                let change = next.patch_from(report);
                let patched = self.cluster.patch(&key, &change, names::REPORTS).await;
                patched.map(drop)
            }
            (None, Some(noted)) if !next.rules.is_empty() => {
                let report = next.new_object(&noted.object);
                let created = self.cluster.create(&report, names::REPORTS).await;
                created.map(drop)
            }
            (None, _) => Ok(()),
        };
        match written {
            Ok(()) => {}
            Err(error) if error.is_conflict() => return Ok(Action::Requeue(CONFLICT_PAUSE)),
            // The namespace is deleted or terminating, and the object with it; or the kind is not served.
            Err(error) if error.is_not_found() || error.is_namespace_terminating() => {
                debug!(report = %key, %error, "Not reported");
            }
            Err(error) => return Err(error),
        }
        if let Some(noted) = &noted {
            self.ledger.mark_written(&key, &noted.rules);
        }
        Ok(again.map_or(Action::AwaitChange, Action::Requeue))
    }

    /// Removes results of policies that were deleted or no longer audit, if this process leads. Returns when
    /// to repeat this for young results.
    fn remove_outdated(&self, rules: &mut AuditedRules) -> Option<Duration> {
        let policies = self.store.current();
        if !self.is_leader() || !policies.is_complete {
            return None;
        }
        let now = self.context.clock.now();
        let mut again = None;
        rules.retain(|rule, judgement| {
            if policies.audits(&rule.policy, &judgement.policy_uid) {
                return true;
            }
            let is_young = now.duration_since(judgement.at) < MINIMUM_AGE;
            if is_young {
                again = Some(MINIMUM_AGE.unsigned_abs());
            }
            is_young
        });
        again
    }
}
