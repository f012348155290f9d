//! The trace of each install that is under way.

use std::{collections::HashMap, sync::Arc};

use jiff::Timestamp;
use parking_lot::Mutex;
use windlass_api::{BundleDeployment, BundleDeploymentStatus};
use windlass_cluster::{
    Clock, SystemClock, kinds,
    telemetry::traces::{PhaseTrace, SpanAttribute, TraceKey, TracePhase, TraceScope},
};

use super::{reconciler::BundleReconciler, record_config_maps::identity, report::InstallReport};
use crate::install::{
    revision::record_name,
    status::{Conditions, InstallOutcome, Milestone},
};

/// A phase of an install, in order, as its trace shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InstallPhase {
    /// The namespace, and what a revision before has left.
    Prepare,
    /// The pods are tried out, before anything changes.
    Canary,
    /// What pods need is applied.
    Apply,
    /// Deployments are applied, and their pods become ready.
    Rollout,
    /// Webhooks are asked what they answer, and endpoints what they serve.
    Proof,
    /// Webhooks and conversions come to carry traffic.
    Arming,
    /// Pods of the revision before end, and the rest is applied.
    Settle,
    /// Stored objects are rewritten, and what was dropped is removed.
    Migration,
}

/// Remembers the trace of each install. Another process, which remembers none, comes to the same.
#[derive(Default)]
pub(super) struct InstallTraces(Mutex<HashMap<String, FollowedInstall>>);

#[derive(Clone)]
struct FollowedInstall {
    revision: i64,
    /// Nothing once it has ended.
    scope: Option<Arc<TraceScope>>,
}

impl InstallPhase {
    /// It begins in the trace that this task works on, if there is one and it has not yet.
    pub(super) fn enter(self) {
        if let Some(scope) = TraceScope::current() {
            scope.enter(self.into());
        }
    }
}

impl From<InstallPhase> for TracePhase {
    fn from(phase: InstallPhase) -> Self {
        let (number, name) = match phase {
            InstallPhase::Prepare => (1, "prepare"),
            InstallPhase::Canary => (2, "canary"),
            InstallPhase::Apply => (3, "apply"),
            InstallPhase::Rollout => (4, "rollout"),
            InstallPhase::Proof => (5, "proof"),
            InstallPhase::Arming => (6, "arming"),
            InstallPhase::Settle => (7, "settle"),
            InstallPhase::Migration => (8, "migration"),
        };
        Self { number, name }
    }
}

impl InstallTraces {
    /// Forgets a BundleDeployment that is gone.
    pub(super) fn forget(&self, name: &str) {
        let followed = self.0.lock().remove(name);
        if let Some(scope) = followed.and_then(|followed| followed.scope) {
            scope.end(Some("the BundleDeployment was deleted"));
        }
    }

    /// Notes how an install stands.
    pub(super) fn note(&self, name: &str, outcome: &InstallOutcome) {
        let scope = self
            .0
            .lock()
            .get(name)
            .and_then(|followed| followed.scope.clone());
        if let (Some(scope), Some((reason, message))) = (scope, outcome.news()) {
            scope.wait(reason, message);
        }
    }

    /// Everything is done, and the status says so.
    pub(super) fn finish(&self, name: &str) {
        let mut all = self.0.lock();
        let scope = all.get_mut(name).and_then(|followed| followed.scope.take());
        if let Some(scope) = scope {
            scope.end(None);
        }
    }

    /// That of `revision`, which is begun where it is another one than before.
    fn follow(
        &self,
        name: &str,
        revision: Option<i64>,
        begin: impl FnOnce(i64) -> Option<Arc<TraceScope>>,
    ) -> Option<Arc<TraceScope>> {
        let mut all = self.0.lock();
        let known = all.get(name).cloned();
        let Some(revision) = revision else {
            if let Some(scope) = all.get_mut(name).and_then(|known| known.scope.take()) {
                scope.end(Some("superseded by another revision"));
            }
            return None;
        };
        if let Some(known) = &known
            && known.revision == revision
        {
            return known.scope.clone();
        }
        if let Some(scope) = known.and_then(|known| known.scope) {
            scope.end(Some("superseded by another revision"));
        }
        let scope = begin(revision);
        let followed = FollowedInstall {
            revision,
            scope: scope.clone(),
        };
        all.insert(name.to_owned(), followed);
        scope
    }

    /// The revision of the last trace, and whether it goes on.
    fn known(&self, name: &str) -> Option<(i64, bool)> {
        let all = self.0.lock();
        let followed = all.get(name)?;
        Some((followed.revision, followed.scope.is_some()))
    }
}

impl BundleReconciler {
    /// The trace of the install that is under way, if one is.
    pub(super) fn trace(
        &self,
        deployment: &BundleDeployment,
        report: &InstallReport,
    ) -> Option<Arc<TraceScope>> {
        let traces = &self.context.traces;
        if !traces.are_on() {
            return None;
        }
        let (name, _) = identity(deployment);
        let conditions = deployment.status.as_ref().map(|status| &status.conditions);
        let migrated = conditions.and_then(|conditions| conditions.find(Milestone::Migrated.condition()));
        let revision = under_way(
            report.next.as_ref().map(|next| next.revision),
            report.installed.as_ref().map(|installed| installed.revision),
            self.installs.known(name),
            migrated.is_some_and(|migrated| migrated.status == "False"),
        );
        self.installs.follow(name, revision, |revision| {
            traces.scope(|| self.install_trace(deployment, report, revision))
        })
    }

    fn install_trace(
        &self,
        deployment: &BundleDeployment,
        report: &InstallReport,
        revision: i64,
    ) -> PhaseTrace {
        let (name, uid) = identity(deployment);
        let namespace = deployment.spec.namespace.clone();
        let mut attributes = vec![
            SpanAttribute::new("k8s.namespace.name", namespace),
            SpanAttribute::new("windlass.bundle_deployment", name.to_owned()),
            SpanAttribute::new("windlass.revision", revision),
        ];
        if let Some(version) = report.next.as_ref().and_then(|next| next.version.clone()) {
            attributes.push(SpanAttribute::new("windlass.bundle_version", version));
        }
        let key = TraceKey::new("install", uid, revision);
        let trace = PhaseTrace::new(key, "install", self.recorded_at(name, revision), attributes);
        let status = deployment.status.as_ref();
        match status.and_then(|status| left_in(status, revision)) {
            Some((phase, since)) => trace.resumed(phase.into(), since),
            None => trace,
        }
    }

    /// When a revision was recorded, which its record says; now, where no watch has shown that yet.
    fn recorded_at(&self, name: &str, revision: i64) -> Timestamp {
        let key = kinds::CONFIG_MAP.object(Some(&self.context.namespace), &record_name(name, revision));
        let record = self.context.index.find(&key);
        let now = SystemClock.now();
        record
            .as_deref()
            .and_then(|record| windlass_object::object::text(record, "/metadata/creationTimestamp"))
            .and_then(|created| created.parse().ok())
            .map_or(now, |created: Timestamp| created.min(now))
    }
}

/// In which phase the status has an install of this revision, and since when: another process has told those before.
fn left_in(status: &BundleDeploymentStatus, revision: i64) -> Option<(InstallPhase, Timestamp)> {
    let next = status.next.as_ref();
    if next.is_some_and(|next| next.revision != Some(revision)) {
        return None;
    }
    let steps = Milestone::ALL
        .into_iter()
        .filter(|step| *step > Milestone::Accepted);
    let waiting = steps.filter_map(|step| Some((step, status.conditions.find(step.condition())?)));
    // While another revision is installed, some conditions are about that one.
    let (step, condition) = waiting
        .filter(|(_, condition)| condition.status == "False")
        .find(|(_, condition)| next.is_none_or(|next| next.reason == condition.reason))?;
    let phase = match step {
        Milestone::Accepted => return None,
        Milestone::Installed if condition.reason.starts_with("Canary") => InstallPhase::Canary,
        Milestone::Installed => InstallPhase::Apply,
        Milestone::Available => InstallPhase::Rollout,
        Milestone::Armed => InstallPhase::Proof,
        Milestone::Migrated => InstallPhase::Migration,
    };
    Some((phase, condition.last_transition_time.0))
}

/// The revision that is under way: the next one, once it has a number (which the outer `None` of `next` means to be none); else the
/// installed one, as long as it is followed, or where nothing is known of it and objects are still to be rewritten.
fn under_way(
    next: Option<Option<i64>>,
    installed: Option<i64>,
    known: Option<(i64, bool)>,
    is_migrating: bool,
) -> Option<i64> {
    match (next, known) {
        (Some(next), _) => next,
        (None, Some((known, goes_on))) => installed.filter(|installed| goes_on && *installed == known),
        (None, None) => installed.filter(|_| is_migrating),
    }
}

#[cfg(test)]
mod tests {
    use windlass_api::NextRevision;

    use super::*;

    #[test]
    fn an_install_is_under_way_until_everything_is_rewritten() {
        for (next, installed, known, is_migrating, expected) in [
            // Not recorded yet.
            (Some(None), None, None, false, None),
            (Some(Some(1)), None, None, false, Some(1)),
            (Some(Some(1)), None, Some((1, true)), false, Some(1)),
            (Some(Some(2)), Some(1), Some((1, false)), false, Some(2)),
            // Armed, and goes on; also in the next process.
            (None, Some(2), Some((2, true)), true, Some(2)),
            (None, Some(2), None, true, Some(2)),
            // Done.
            (None, Some(2), None, false, None),
            (None, Some(2), Some((2, false)), true, None),
            // Back to what is installed.
            (None, Some(1), Some((2, true)), false, None),
            (None, None, None, true, None),
        ] {
            assert_eq!(
                under_way(next, installed, known, is_migrating),
                expected,
                "{next:?} {installed:?} {known:?} {is_migrating}"
            );
        }
    }

    #[test]
    fn the_next_process_goes_on_where_the_status_has_it() {
        let status = |said: &[(&str, &str, &str)], next| {
            let condition = |(nth, (kind, status, reason)): (usize, &(&str, &str, &str))| {
                serde_json::from_value(serde_json::json!({
                    "type": kind, "status": status, "reason": reason, "message": "",
                    "lastTransitionTime": format!("2026-01-01T00:00:0{nth}Z"),
                }))
                .unwrap()
            };
            BundleDeploymentStatus {
                next,
                conditions: said.iter().enumerate().map(condition).collect(),
                ..BundleDeploymentStatus::default()
            }
        };
        let next = |reason: &str| NextRevision {
            revision: Some(2),
            reason: reason.to_owned(),
            ..NextRevision::default()
        };
        let rolling = [
            ("Installed", "True", "Done"),
            ("Available", "False", "RollingOut"),
            ("Armed", "Unknown", "NotReached"),
        ];
        // The revision before is not available, and that is another matter.
        let proving = [
            ("Installed", "True", "Done"),
            ("Available", "False", "Unavailable"),
            ("Armed", "False", "NotServed"),
        ];
        for (said, next, expected) in [
            (
                &rolling[..],
                Some(next("RollingOut")),
                Some((InstallPhase::Rollout, 1)),
            ),
            (&proving, Some(next("NotServed")), Some((InstallPhase::Proof, 2))),
            (
                &[("Installed", "False", "CanaryStarting")],
                Some(next("CanaryStarting")),
                Some((InstallPhase::Canary, 0)),
            ),
            (
                &[("Installed", "False", "Retrying")],
                Some(next("Retrying")),
                Some((InstallPhase::Apply, 0)),
            ),
            (
                &[("Migrated", "False", "Migrating")],
                None,
                Some((InstallPhase::Migration, 0)),
            ),
            (&[("Accepted", "False", "Pulling")], Some(next("Pulling")), None),
            (&[], Some(next("")), None),
        ] {
            let left = left_in(&status(said, next), 2);
            let left = left.map(|(phase, since)| (phase, since.as_second() % 10));
            assert_eq!(left, expected, "{said:?}");
        }
        assert_eq!(left_in(&status(&rolling, Some(next("RollingOut"))), 3), None);
    }

    #[test]
    fn phases_are_numbered_as_they_come() {
        let phases = [
            InstallPhase::Prepare,
            InstallPhase::Canary,
            InstallPhase::Apply,
            InstallPhase::Rollout,
            InstallPhase::Proof,
            InstallPhase::Arming,
            InstallPhase::Settle,
            InstallPhase::Migration,
        ];
        assert!(phases.map(TracePhase::from).is_sorted());
    }
}
