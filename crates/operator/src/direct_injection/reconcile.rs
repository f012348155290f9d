//! One target, and what it asks for that Windlass does not issue.

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
    contests::{Contests, Turn},
    observed_source::{ObservedSource, SourceObjects, named_secret, source_object},
    observed_sources::{ObservedSources, United, is_issued},
    requests::{NOT_GIVEN, foreign_sets, is_given},
    withdrawal::Withdrawals,
};
use crate::{
    ca_injectors,
    context::Context,
    injection::{InjectionOutcome, inject, release},
    reporting::Announced,
};

/// Gives targets what others than Windlass issue.
pub(super) struct DirectInjector {
    pub(super) context: Arc<Context>,
    pub(super) timing: Timing,
    pub(super) contests: Contests,
    pub(super) announced: Announced,
    pub(super) sources: Arc<ObservedSources>,
    pub(super) withdrawals: Withdrawals,
    /// Repairs are counted from then.
    pub(super) since: LeaderSince,
}

/// Why a reconciliation has to be tried again.
#[derive(Debug, Error)]
#[error(transparent)]
pub(super) struct InjectDirectlyError(#[from] RequestError);

/// How often a target is looked at that nothing changes of: a CA ends, and a write that was refused may be allowed.
const LOOK: Duration = Duration::from_secs(600);

/// How soon a target is looked at again that another CA injector has written.
const RETURN: SignedDuration = SignedDuration::from_secs(1);

/// Why a target has no trust bundle, where it asks for one that we do not have.
const NO_BUNDLE: &str = "NoTrustBundle";

/// How soon a target is looked at again in which an injection has left something behind.
const RELEASE: Duration = Duration::from_secs(1);

// === impl DirectInjector ===

impl DirectInjector {
    pub(super) async fn reconcile(self: Arc<Self>, key: ObjectKey) -> Result<Action, InjectDirectlyError> {
        if self.is_done(&key) {
            return Ok(Action::Requeue(LOOK));
        }
        let Some(target) = self.context.index.find(&key) else {
            self.forget(&key);
            return Ok(Action::AwaitChange);
        };
        let kinds = self.context.index.target_kinds();
        let requests = match CaRequests::of(&target, &kinds) {
            Ok(requests) => requests,
            Err(invalid) => {
                // Where it asks a ServingCertificate, that says it.
                let readable = CaRequests::readable(&target, &kinds);
                if foreign_sets(&readable).len() == readable.sets().len() {
                    self.say(&target, &key, NO_BUNDLE, &invalid.to_string());
                }
                return Ok(Action::AwaitChange);
            }
        };
        let mut sets = foreign_sets(&requests);
        if sets.is_empty() {
            self.forget(&key);
            return Ok(self.withdraw(&target, &key).await?);
        }
        if let Err(elsewhere) = ManagedElsewhere::check(&target, &kinds) {
            self.say(&target, &key, "ManagedElsewhere", &elsewhere.to_string());
            return Ok(Action::AwaitChange);
        }
        let asked = sets.len();
        sets.retain(|set| is_given(set, &key));
        let mut problems = Vec::new();
        if sets.len() < asked {
            problems.push(NOT_GIVEN.to_owned());
        }
        let known: Vec<_> = sets
            .iter()
            .filter_map(|set| Some((set, self.sources.unite(set, &self.context)?)))
            .collect();
        let injections = known.iter().filter_map(|(_, united)| united.injection.clone());
        self.contests.retain(&key, &injections.collect::<Vec<_>>());
        let mut next = LOOK;
        for (set, united) in &known {
            problems.extend(united.problem.clone());
            let Some(injection) = &united.injection else {
                continue;
            };
            let (refusal, version) = match self.inject(&target, &key, injection).await? {
                Injected::Later(wait) => {
                    next = next.min(wait.unsigned_abs());
                    continue;
                }
                Injected::Now(InjectionOutcome::Refused(refusal)) => (Some(refusal), None),
                Injected::Now(InjectionOutcome::Written(version)) => (None, version),
                Injected::Now(_) => (None, None),
            };
            problems.extend(refusal);
            if let Some(version) = version.filter(|_| asked == 1 && !injection::needs_release(&target)) {
                self.contests.done(&key, version);
            }
            if !self.release(&target, &key, set, united).await? {
                next = next.min(RELEASE);
            }
        }
        match problems.is_empty() {
            true => self.announced.forget(&key),
            false => self.say(&target, &key, NO_BUNDLE, &problems.join("; ")),
        }
        Ok(Action::Requeue(next))
    }

    /// Whether a target is as our last write has made it, and its source, too.
    fn is_done(&self, key: &ObjectKey) -> bool {
        let Some(target) = self.context.index.find_indexed(key) else {
            return false;
        };
        let version = target.version();
        let Some(carried) = version.and_then(|version| self.contests.carried(key, version)) else {
            return false;
        };
        let set: CaSources = target.ca_sources().cloned().collect();
        let united = self.sources.unite(&set, &self.context);
        united.is_some_and(|united| united.problem.is_none() && united.injection.as_ref() == Some(&carried))
    }

    /// Gives a target back what it lacks, for a leader that does not. What keeps it from that is the leader's to say.
    pub(super) async fn stand_in(self: Arc<Self>, key: ObjectKey) -> Result<Action, InjectDirectlyError> {
        let Some(target) = self.context.index.find(&key) else {
            return Ok(Action::AwaitChange);
        };
        let requests = CaRequests::of(&target, &self.context.index.target_kinds()).unwrap_or_default();
        let lacks = |united: &United| {
            let injection = united.injection.as_ref();
            injection.is_some_and(|injection| injection.is_needed(&target) == Ok(true))
        };
        let mut next = None;
        for set in foreign_sets(&requests) {
            if !is_given(&set, &key) {
                continue;
            }
            let known = self.sources.unite(&set, &self.context);
            if !known.is_some_and(|known| lacks(&known)) {
                continue;
            }
            // A watch may be late.
            let Some(united) = self.read(&set).await?.filter(|united| lacks(united)) else {
                continue;
            };
            if let Some(injection) = &united.injection
                && let Injected::Later(wait) = self.inject(&target, &key, injection).await?
            {
                next = next.max(Some(wait));
            }
        }
        Ok(next.map_or(Action::AwaitChange, |wait| Action::Requeue(wait.unsigned_abs())))
    }

    /// What the sources of a set give, by the API server's own word.
    async fn read(&self, set: &CaSources) -> Result<Option<United>, InjectDirectlyError> {
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
            if is_issued(&key, &source, &self.context.index) {
                return Ok(None);
            }
            sources.push(Arc::new(source));
        }
        let kinds = self.context.index.target_kinds();
        Ok(Some(United::new(set, sources, kinds)))
    }

    /// Forgets a target that is gone, or asks for nothing any more.
    fn forget(&self, key: &ObjectKey) {
        self.contests.forget(key);
        self.announced.forget(key);
    }

    /// Gives a target the trust bundle, unless that has to wait.
    async fn inject(
        &self,
        target: &Value,
        key: &ObjectKey,
        injection: &Arc<Injection>,
    ) -> Result<Injected, InjectDirectlyError> {
        // Counted before the write: a watch may be faster than the answer.
        let uptime = SignedDuration::try_from(self.since.elapsed()).unwrap_or(SignedDuration::MAX);
        let outcome = match injection.is_needed(target) {
            Ok(false) => InjectionOutcome::Unchanged,
            Ok(true) => {
                let turn = self.contests.turn(key, injection, uptime, &self.timing);
                if let Turn::Wait(wait) = turn {
                    return Ok(Injected::Later(wait));
                }
                if turn == Turn::Repair && ca_injectors::is_taken_back(&self.context, target) {
                    return Ok(Injected::Later(RETURN));
                }
                let leave = self.context.pace_of(key).turn().await;
                let outcome = inject(&self.context.cluster, leave, key, target, injection).await?;
                if outcome.is_written() && turn == Turn::Repair {
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
            self.contests.carries(key, injection, uptime, &self.timing);
        }
        Ok(Injected::Now(outcome))
    }

    /// Gives up what an injection has left behind in a target, where that is in the way of who applies it: when all targets that
    /// ask for the same carry what they should, which everybody waits for. Whether nothing is left to do.
    async fn release(
        &self,
        target: &Value,
        key: &ObjectKey,
        set: &CaSources,
        united: &United,
    ) -> Result<bool, InjectDirectlyError> {
        let kinds = self.context.index.target_kinds();
        if injection::release(target, &kinds).is_none() {
            return Ok(true);
        }
        if !united.is_everywhere(|| self.is_everywhere(set, united)) {
            return Ok(false);
        }
        let turn = self.context.pace_of(key).turn().await;
        release(&self.context.cluster, turn, key, target, &kinds).await?;
        Ok(true)
    }

    /// Whether all targets that ask for the same carry what is given, or cannot.
    fn is_everywhere(&self, set: &CaSources, united: &United) -> bool {
        let Some((injection, source)) = united.injection.as_ref().zip(set.first()) else {
            return false;
        };
        let mut targets = self.context.index.targets(source).into_iter();
        let is_waited_for = |(key, target): (ObjectKey, IndexedObject)| {
            injection.is_needed(&target.read()) == Ok(true) && !self.announced.has_said(&key)
        };
        !targets.any(is_waited_for)
    }

    /// Counts a repair, and says in an event from time to time whose writes are repaired.
    fn count_repair(
        &self,
        target: &Value,
        key: &ObjectKey,
        injection: &Arc<Injection>,
        uptime: SignedDuration,
    ) {
        let by = injection::last_writer(target);
        let limiter = self.contests.repaired(key, injection, by, uptime, &self.timing);
        self.context.metrics.repaired(key);
        if limiter.is_notable() {
            warn!(target = %key, "{limiter}");
            self.context
                .warn_of_target(key, target, "TargetContested", &limiter.to_string());
        }
    }

    /// Says once what keeps a target from its trust bundle.
    fn say(&self, target: &Value, key: &ObjectKey, reason: &'static str, problem: &str) {
        if self.announced.is_news(key, problem, None) {
            self.context.warn_of_target(key, target, reason, problem);
        }
    }
}

/// What became of an injection.
enum Injected {
    /// This.
    Now(InjectionOutcome),
    /// It has to wait for so long.
    Later(SignedDuration),
}
