//! Writes reports. Every replica does.

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

/// Brings reports to what policies said last.
struct ReportWriter {
    context: Arc<Context>,
    /// Not fenced: one that stands by is asked, too.
    cluster: Cluster,
    store: Arc<PolicyStore>,
    ledger: Arc<AuditLedger>,
}

/// The kinds of reports.
const REPORTS: [Kind; 2] = [POLICY_REPORT, CLUSTER_POLICY_REPORT];

/// The CustomResourceDefinitions of reports, which come and go.
pub const REPORT_DEFINITIONS: [&str; 2] = [
    "clusterpolicyreports.wgpolicyk8s.io",
    "policyreports.wgpolicyk8s.io",
];

/// How the worker works.
const WORKER: worker::Settings = worker::Settings::new("policy-report", 4);

/// How soon a report is looked at again that cannot be seen.
const UNSEEN: Duration = Duration::from_secs(5);

/// How soon it is tried again what somebody else was faster with.
const OVERTAKEN: Duration = Duration::from_millis(500);

/// How old a result is before it is taken out for its policy: another replica may have seen that earlier than the leader.
const YOUNG: SignedDuration = SignedDuration::from_secs(5);

/// What sees our reports of a kind, if it is one of reports.
pub(super) fn watch_of(kind: &Kind) -> Option<Watch> {
    let (label, value) = MANAGED_BY;
    let selector = Selector::Label(format!("{label}={value}"));
    REPORTS
        .contains(kind)
        .then(|| Watch::all(kind.clone()).selected(selector))
}

/// Writes reports through `cluster`, whether this process leads or not, until `shutdown`.
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
    // Boxed: the body is compiled here once, not again in every program that runs it.
    Box::pin(async move {
        // They tell when the kinds are served.
        let definitions = REPORT_DEFINITIONS
            .map(|name| Watch::all(CUSTOM_RESOURCE_DEFINITION).selected(Selector::Name(name.to_owned())));
        for watch in REPORTS.iter().filter_map(watch_of).chain(definitions) {
            context.watches.want(watch);
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

// === impl ReportWriter ===

impl ReportWriter {
    /// Puts every report into the queue that changed and that this process knows something else of, or that has results of a
    /// policy that may have gone, for ever.
    async fn enqueue(self: Arc<Self>) {
        let mut changes = self.context.index.subscribe();
        let mut snapshots = self.store.changes();
        let mut acquired = pin!(self.context.leadership.acquired());
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
                        if is_there && (is_leading || self.ledger.has(&change.key)) {
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

    fn leads(&self) -> bool {
        self.context.leadership.check().is_ok()
    }

    async fn reconcile(self: Arc<Self>, key: ObjectKey) -> Result<Action, RequestError> {
        let index = &self.context.index;
        let Some(watch) = watch_of(&Kind::from_key(&key)) else {
            return Ok(Action::AwaitChange);
        };
        if index.is_absent(&watch) {
            self.ledger.forget(&key);
            return Ok(Action::AwaitChange);
        }
        if !index.is_complete(&watch) {
            return Ok(Action::Requeue(UNSEEN));
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
        let again = self.take_out(&mut rules);
        let next = known.next(rules);
        let written = match (&report, &noted) {
            (Some(report), _) if next.rules.is_empty() => {
                let uid = object::text(report, "/metadata/uid");
                self.cluster.delete(&key, uid).await
            }
            (Some(_), _) if next.is_told_by(&known) => Ok(()),
            (Some(report), _) => {
                let change = next.change_of(report);
                let patched = self.cluster.patch(&key, &change, names::REPORTS).await;
                patched.map(drop)
            }
            (None, Some(noted)) if !next.rules.is_empty() => {
                let report = next.about(&noted.object);
                let created = self.cluster.create(&report, names::REPORTS).await;
                created.map(drop)
            }
            (None, _) => Ok(()),
        };
        match written {
            Ok(()) => {}
            Err(error) if error.is_conflict() => return Ok(Action::Requeue(OVERTAKEN)),
            // Its namespace is gone or going, and the object with it; or the kind is.
            Err(error) if error.is_not_found() || error.is_namespace_terminating() => {
                debug!(report = %key, %error, "Not reported");
            }
            Err(error) => return Err(error),
        }
        if let Some(noted) = &noted {
            self.ledger.settle(&key, &noted.rules);
        }
        Ok(again.map_or(Action::AwaitChange, Action::Requeue))
    }

    /// Takes out what was said by policies that are gone, or audit no more, if this process leads. When that is to be done again for
    /// what is too young, if anything is.
    fn take_out(&self, rules: &mut AuditedRules) -> Option<Duration> {
        let policies = self.store.current();
        if !self.leads() || !policies.is_complete {
            return None;
        }
        let now = self.context.clock.now();
        let mut again = None;
        rules.retain(|rule, judgement| {
            if policies.audits(&rule.policy, &judgement.policy_uid) {
                return true;
            }
            let is_young = now.duration_since(judgement.at) < YOUNG;
            if is_young {
                again = Some(YOUNG.unsigned_abs());
            }
            is_young
        });
        again
    }
}
