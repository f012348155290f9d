//! Reconciliation of a target that requests CA certificates which Windlass does not issue.

use std::{sync::Arc, time::Duration};

use jiff::SignedDuration;
use serde_json::Value;
use thiserror::Error;
use tracing::warn;
use windlass_cluster::{IndexedObject, RequestError, lease::LeaderSince, worker::Action};
use windlass_object::ObjectKey;
use windlass_trust::{
    injection::{self, CaRequests, CaSources, Injection, ManagedElsewhere},
    objects::SourceRecord,
    rotation::Timing,
};

use super::{
    injection_conflicts::{InjectionConflicts, WriteDecision},
    observed_source::{ObservedSource, SourceObjects, named_secret, source_object},
    observed_sources::{CombinedSources, ObservedSources, is_managed_by_rotation},
    requests::{API_SERVER_CA_UNAVAILABLE, external_sets, is_available},
    withdrawal::Withdrawals,
};
use crate::{
    announced::Announced,
    ca_injectors,
    context::Context,
    injection::{InjectionOutcome, inject, release},
};

/// Injects CA certificates that Windlass does not issue.
pub(super) struct DirectInjector {
    pub(super) context: Arc<Context>,
    pub(super) timing: Timing,
    pub(super) conflicts: InjectionConflicts,
    pub(super) announced: Announced,
    pub(super) sources: Arc<ObservedSources>,
    pub(super) withdrawals: Withdrawals,
    /// Start of the monotonic clock for repairs.
    pub(super) since: LeaderSince,
}

/// Why a reconciliation failed and is retried.
#[derive(Debug, Error)]
#[error(transparent)]
pub(super) struct InjectDirectlyError(#[from] RequestError);

/// Time between reconciliations of an unchanged target. CAs expire, and a refused write may be allowed later.
const RESYNC: Duration = Duration::from_secs(600);

/// Time until a target is reconciled again after another CA injector has written it.
const INJECTOR_RETRY: SignedDuration = SignedDuration::from_secs(1);

/// Reason if a requested trust bundle is missing.
const NO_BUNDLE: &str = "NoTrustBundle";

/// Time until the release of leftover field ownership is tried again.
const RELEASE_RETRY: Duration = Duration::from_secs(1);

impl DirectInjector {
    pub(super) async fn reconcile(self: Arc<Self>, key: ObjectKey) -> Result<Action, InjectDirectlyError> {
        if self.is_up_to_date(&key) {
            return Ok(Action::Requeue(RESYNC));
        }
        let Some(target) = self.context.index.find(&key) else {
            self.forget(&key);
            return Ok(Action::AwaitChange);
        };
        let kinds = self.context.index.target_kinds();
        let requests = match CaRequests::from_object(&target, &kinds) {
            Ok(requests) => requests,
            Err(invalid) => {
                // For a target of a ServingCertificate, that controller reports the problem.
                let readable = CaRequests::from_valid_annotations(&target, &kinds);
                if external_sets(&readable).len() == readable.sets().len() {
                    self.warn_once(&target, &key, NO_BUNDLE, &invalid.to_string());
                }
                return Ok(Action::AwaitChange);
            }
        };
        let mut sets = external_sets(&requests);
        if sets.is_empty() {
            self.forget(&key);
            return Ok(self.withdraw(&target, &key).await?);
        }
        if let Err(elsewhere) = ManagedElsewhere::check(&target, &kinds) {
            self.warn_once(&target, &key, "ManagedElsewhere", &elsewhere.to_string());
            return Ok(Action::AwaitChange);
        }
        let requested = sets.len();
        sets.retain(|set| is_available(set, &key));
        let mut problems = Vec::new();
        if sets.len() < requested {
            problems.push(API_SERVER_CA_UNAVAILABLE.to_owned());
        }
        let known: Vec<_> = sets
            .iter()
            .filter_map(|set| Some((set, self.sources.combine(set, &self.context)?)))
            .collect();
        let injections = known
            .iter()
            .filter_map(|(_, combined)| combined.injection.clone());
        self.conflicts.retain(&key, &injections.collect::<Vec<_>>());
        let mut next = RESYNC;
        for (set, combined) in &known {
            problems.extend(combined.problem.clone());
            let Some(injection) = &combined.injection else {
                continue;
            };
            let (refusal, version) = match self.inject(&target, &key, injection).await? {
                InjectionAttempt::Later(wait) => {
                    next = next.min(wait.unsigned_abs());
                    continue;
                }
                InjectionAttempt::Tried(InjectionOutcome::Refused(refusal)) => (Some(refusal), None),
                InjectionAttempt::Tried(InjectionOutcome::Written(version)) => (None, version),
                InjectionAttempt::Tried(_) => (None, None),
            };
            problems.extend(refusal);
            if let Some(version) = version.filter(|_| requested == 1 && !injection::needs_release(&target)) {
                self.conflicts.record_complete(&key, version);
            }
            if !self.release(&target, &key, set, combined).await? {
                next = next.min(RELEASE_RETRY);
            }
        }
        match problems.is_empty() {
            true => self.announced.forget(&key),
            false => self.warn_once(&target, &key, NO_BUNDLE, &problems.join("; ")),
        }
        Ok(Action::Requeue(next))
    }

    /// Reports whether a target and its sources are unchanged since the last write of Windlass.
    fn is_up_to_date(&self, key: &ObjectKey) -> bool {
        let Some(target) = self.context.index.find_indexed(key) else {
            return false;
        };
        let version = target.version();
        let Some(carried) = version.and_then(|version| self.conflicts.complete_injection(key, version))
        else {
            return false;
        };
        let set: CaSources = target.ca_sources().cloned().collect();
        let combined = self.sources.combine(&set, &self.context);
        combined.is_some_and(|combined| {
            combined.problem.is_none() && combined.injection.as_ref() == Some(&carried)
        })
    }

    /// Repairs a target if the leader does not. Problems are left to the leader to report.
    pub(super) async fn repair_in_standby(
        self: Arc<Self>,
        key: ObjectKey,
    ) -> Result<Action, InjectDirectlyError> {
        let Some(target) = self.context.index.find(&key) else {
            return Ok(Action::AwaitChange);
        };
        let requests =
            CaRequests::from_object(&target, &self.context.index.target_kinds()).unwrap_or_default();
        let lacks = |combined: &CombinedSources| {
            let injection = combined.injection.as_ref();
            injection.is_some_and(|injection| injection.is_needed(&target) == Ok(true))
        };
        let mut next = None;
        for set in external_sets(&requests) {
            if !is_available(&set, &key) {
                continue;
            }
            let known = self.sources.combine(&set, &self.context);
            if !known.is_some_and(|known| lacks(&known)) {
                continue;
            }
            // The watch may be late.
            let Some(combined) = self.read_sources(&set).await?.filter(|combined| lacks(combined)) else {
                continue;
            };
            if let Some(injection) = &combined.injection
                && let InjectionAttempt::Later(wait) = self.inject(&target, &key, injection).await?
            {
                next = next.max(Some(wait));
            }
        }
        Ok(next.map_or(Action::AwaitChange, |wait| Action::Requeue(wait.unsigned_abs())))
    }

    /// Reads a set of sources from the API server.
    async fn read_sources(&self, set: &CaSources) -> Result<Option<CombinedSources>, InjectDirectlyError> {
        let cluster = &self.context.cluster;
        let mut sources = Vec::new();
        for source in set {
            let Some(key) = source_object(source, &self.context.namespace) else {
                return Ok(None);
            };
            let object = cluster.read(&key).await?.map(Arc::new);
            let secret = match named_secret(&key, || object.clone()) {
                Some(secret) => Some((secret.clone(), cluster.read(&secret).await?.map(Arc::new))),
                None => None,
            };
            let objects = SourceObjects { object, secret };
            let record = cluster
                .read(&SourceRecord::key(&self.context.namespace, &key))
                .await?;
            let source = ObservedSource::new(&key, objects, record.as_ref(), self.context.clock.now());
            if is_managed_by_rotation(&key, &source, &self.context.index) {
                return Ok(None);
            }
            sources.push(Arc::new(source));
        }
        let kinds = self.context.index.target_kinds();
        Ok(Some(CombinedSources::new(set, sources, kinds)))
    }

    /// Forgets a target that does not exist or requests nothing.
    fn forget(&self, key: &ObjectKey) {
        self.conflicts.forget(key);
        self.announced.forget(key);
    }

    /// Injects the trust bundle, unless a repair has to wait.
    async fn inject(
        &self,
        target: &Value,
        key: &ObjectKey,
        injection: &Arc<Injection>,
    ) -> Result<InjectionAttempt, InjectDirectlyError> {
        // Measured before the write, because a watch may be faster than the response.
        let uptime = SignedDuration::try_from(self.since.elapsed()).unwrap_or(SignedDuration::MAX);
        let outcome = match injection.is_needed(target) {
            Ok(false) => InjectionOutcome::Unchanged,
            Ok(true) => {
                let decision = self.conflicts.decide(key, injection, uptime, &self.timing);
                if let WriteDecision::Wait(wait) = decision {
                    return Ok(InjectionAttempt::Later(wait));
                }
                if decision == WriteDecision::Repair && ca_injectors::is_overwritten(&self.context, target) {
                    return Ok(InjectionAttempt::Later(INJECTOR_RETRY));
                }
                let permit = self.context.pace_of(key).acquire().await;
                let outcome = inject(&self.context.cluster, permit, key, target, injection).await?;
                if outcome.is_written() && decision == WriteDecision::Repair {
                    self.count_repair(target, key, injection, uptime);
                }
                outcome
            }
            Err(error) => InjectionOutcome::Refused(error.to_string()),
        };
        if matches!(
            outcome,
            InjectionOutcome::Unchanged | InjectionOutcome::Written(_)
        ) {
            self.conflicts
                .record_present(key, injection, uptime, &self.timing);
        }
        Ok(InjectionAttempt::Tried(outcome))
    }

    /// Releases leftover field ownership of an injection, which would obstruct clients that apply the target.
    /// Waits until all targets with the same request are up to date, since these are more urgent. Returns
    /// whether nothing is left to do.
    async fn release(
        &self,
        target: &Value,
        key: &ObjectKey,
        set: &CaSources,
        combined: &CombinedSources,
    ) -> Result<bool, InjectDirectlyError> {
        let kinds = self.context.index.target_kinds();
        if injection::release(target, &kinds).is_none() {
            return Ok(true);
        }
        if !combined.is_distributed(|| self.is_distributed(set, combined)) {
            return Ok(false);
        }
        let permit = self.context.pace_of(key).acquire().await;
        release(&self.context.cluster, permit, key, target, &kinds).await?;
        Ok(true)
    }

    /// Reports whether all targets with the same request contain the injection, or are known to have a
    /// problem.
    fn is_distributed(&self, set: &CaSources, combined: &CombinedSources) -> bool {
        let Some((injection, source)) = combined.injection.as_ref().zip(set.first()) else {
            return false;
        };
        let mut targets = self.context.index.targets(source).into_iter();
        let delays_retirement = |(key, target): (ObjectKey, IndexedObject)| {
            injection.is_needed(&target.read()) == Ok(true) && !self.announced.has_announced(&key)
        };
        !targets.any(delays_retirement)
    }

    /// Counts a repair, and now and then publishes an event that names the client whose write was repaired.
    fn count_repair(
        &self,
        target: &Value,
        key: &ObjectKey,
        injection: &Arc<Injection>,
        uptime: SignedDuration,
    ) {
        let by = injection::last_writer(target);
        let limiter = self
            .conflicts
            .record_repair(key, injection, by, uptime, &self.timing);
        self.context.metrics.record_repair(key);
        if limiter.is_notable() {
            warn!(target = %key, "{limiter}");
            self.context
                .publish_target_warning(key, target, "TargetContested", &limiter.to_string());
        }
    }

    /// Publishes an event about a problem, once.
    fn warn_once(&self, target: &Value, key: &ObjectKey, reason: &'static str, problem: &str) {
        if self.announced.is_news(key, problem, None) {
            self.context.publish_target_warning(key, target, reason, problem);
        }
    }
}

/// Result of an injection.
enum InjectionAttempt {
    /// The injection was attempted, with this outcome.
    Tried(InjectionOutcome),
    /// The injection has to wait this long.
    Later(SignedDuration),
}
