//! One target, and the Secret that it asks for.

use std::{sync::Arc, time::Duration};

use jiff::SignedDuration;
use serde_json::Value;
use thiserror::Error;
use tracing::warn;
use windlass_cluster::{IndexedObject, RequestError, kinds, lease::LeaderSince, worker::Action};
use windlass_object::ObjectKey;
use windlass_trust::{
    injection::{self, CaSource, Injection},
    rotation::Timing,
};

use super::{
    contests::{Contests, Turn},
    requests::requested_secret,
    secret::{is_of_serving_certificate, read_trust},
    secrets::{ReadSecret, ReadSecrets},
};
use crate::{
    context::Context,
    injection::{InjectionOutcome, TARGET_KINDS, inject, release},
    reporting::Announced,
};

/// Gives targets the `ca.crt` of Secrets.
pub(super) struct DirectInjector {
    pub(super) context: Arc<Context>,
    pub(super) timing: Timing,
    pub(super) contests: Contests,
    pub(super) announced: Announced,
    pub(super) secrets: ReadSecrets,
    /// Repairs are counted from then.
    pub(super) since: LeaderSince,
}

/// Why a reconciliation has to be tried again.
#[derive(Debug, Error)]
#[error(transparent)]
pub(super) struct InjectDirectlyError(#[from] RequestError);

/// How often a target is looked at that nothing changes of: a CA ends, and a write that was refused may be allowed.
const LOOK: Duration = Duration::from_secs(600);

/// How soon a target is looked at again in which an injection has left something behind.
const RELEASE: Duration = Duration::from_secs(1);

// === impl DirectInjector ===

impl DirectInjector {
    pub(super) async fn reconcile(self: Arc<Self>, key: ObjectKey) -> Result<Action, InjectDirectlyError> {
        if self.is_done(&key) {
            return Ok(Action::Requeue(LOOK));
        }
        let Some((target, secret_key)) = self.requesting(&key) else {
            return Ok(Action::AwaitChange);
        };
        let index = &self.context.index;
        let Some(secret) = self.secrets.find(&secret_key, index, self.context.clock.now()) else {
            self.announced.forget(&key);
            return Ok(Action::AwaitChange);
        };
        let injection = match &secret.injection {
            Ok(injection) => injection,
            Err(problem) => {
                self.say(&target, &key, problem);
                return Ok(Action::AwaitChange);
            }
        };
        if let Some(wait) = self.inject(&target, &key, injection).await? {
            return Ok(Action::Requeue(wait.unsigned_abs()));
        }
        let source = CaSource::Secret {
            namespace: secret_key.namespace.unwrap_or_default(),
            name: secret_key.name,
        };
        let is_released = self.release(&target, &source, &secret).await?;
        Ok(Action::Requeue(if is_released { LOOK } else { RELEASE }))
    }

    /// Whether a target is as our last write has made it, and its Secret, too.
    fn is_done(&self, key: &ObjectKey) -> bool {
        let index = &self.context.index;
        let Some(target) = index.find_indexed(key) else {
            return false;
        };
        let carried = target
            .version()
            .and_then(|version| self.contests.carried(key, version));
        let (Some(carried), Some(CaSource::Secret { namespace, name })) = (carried, target.ca_source())
        else {
            return false;
        };
        let secret = kinds::SECRET.object(Some(namespace), name);
        let secret = self.secrets.find(&secret, index, self.context.clock.now());
        secret.is_some_and(|secret| secret.injection.as_ref() == Ok(&carried))
    }

    /// Gives a target back what it lacks, for a leader that does not. What keeps it from that is the leader's to say.
    pub(super) async fn stand_in(self: Arc<Self>, key: ObjectKey) -> Result<Action, InjectDirectlyError> {
        let Some((target, secret_key)) = self.requesting(&key) else {
            return Ok(Action::AwaitChange);
        };
        let now = self.context.clock.now();
        let lacks_trust = |injection: &Injection| injection.is_needed(&target) == Ok(true);
        let known = self.secrets.find(&secret_key, &self.context.index, now);
        let is_due =
            known.is_some_and(|known| known.injection.as_ref().is_ok_and(|known| lacks_trust(known)));
        if !is_due {
            return Ok(Action::AwaitChange);
        }
        // A watch may be late.
        let secret = self.context.cluster.read(&secret_key).await?;
        let index = &self.context.index;
        let direct = secret.filter(|secret| !is_of_serving_certificate(secret, &secret_key, index));
        let trust = direct.and_then(|secret| read_trust(&secret, &secret_key, now).ok());
        let Some(injection) = trust.map(|trust| Arc::new(Injection::new(trust, None))) else {
            return Ok(Action::AwaitChange);
        };
        if !lacks_trust(&injection) {
            return Ok(Action::AwaitChange);
        }
        let wait = self.inject(&target, &key, &injection).await?;
        Ok(wait.map_or(Action::AwaitChange, |wait| Action::Requeue(wait.unsigned_abs())))
    }

    /// A target, and the Secret that it asks for. What is remembered of one that asks no more is forgotten.
    fn requesting(&self, key: &ObjectKey) -> Option<(Arc<Value>, ObjectKey)> {
        let target = self.context.index.find(key);
        let request = target.and_then(|target| Some((target.clone(), requested_secret(&target)?)));
        if request.is_none() {
            self.contests.forget(key);
            self.announced.forget(key);
        }
        request
    }

    /// Gives a target the trust bundle; says how long that has to wait, if it has to.
    async fn inject(
        &self,
        target: &Value,
        key: &ObjectKey,
        injection: &Arc<Injection>,
    ) -> Result<Option<SignedDuration>, InjectDirectlyError> {
        // Counted before the write: a watch may be faster than the answer.
        let uptime = SignedDuration::try_from(self.since.elapsed()).unwrap_or(SignedDuration::MAX);
        let outcome = match injection.is_needed(target) {
            Ok(false) => InjectionOutcome::Unchanged,
            Ok(true) => {
                let turn = self.contests.turn(key, injection, uptime, &self.timing);
                if let Turn::Wait(wait) = turn {
                    return Ok(Some(wait));
                }
                let leave = self.context.pace.turn().await;
                let outcome = inject(&self.context.cluster, leave, target, injection).await?;
                if outcome.is_written() && turn == Turn::Repair {
                    self.count_repair(target, key, injection, uptime);
                }
                outcome
            }
            Err(error) => InjectionOutcome::Refused(error.to_string()),
        };
        match &outcome {
            InjectionOutcome::Refused(message) => self.say(target, key, message),
            InjectionOutcome::Unchanged | InjectionOutcome::Written(_) => {
                self.contests.carries(key, injection, uptime, &self.timing);
                self.announced.forget(key);
            }
            InjectionOutcome::Overtaken | InjectionOutcome::Gone => {}
        }
        if let InjectionOutcome::Written(Some(version)) = outcome
            && !injection::needs_release(target)
        {
            self.contests.done(key, version);
        }
        Ok(None)
    }

    /// Gives up what an injection has left behind in a target, where that is in the way of who applies it: when all targets of
    /// its Secret carry what they should, which everybody waits for. Whether nothing is left to do.
    async fn release(
        &self,
        target: &Value,
        source: &CaSource,
        secret: &ReadSecret,
    ) -> Result<bool, InjectDirectlyError> {
        if injection::release(target).is_none() {
            return Ok(true);
        }
        if !secret.is_everywhere(|| self.is_everywhere(source, secret)) {
            return Ok(false);
        }
        let turn = self.context.pace.turn().await;
        release(&self.context.cluster, turn, target).await?;
        Ok(true)
    }

    /// Whether all targets of a Secret carry what it gives, or cannot.
    fn is_everywhere(&self, source: &CaSource, secret: &ReadSecret) -> bool {
        let Ok(injection) = &secret.injection else {
            return false;
        };
        let mut targets = TARGET_KINDS
            .iter()
            .flat_map(|kind| self.context.index.targets(kind, source));
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
        self.context.metrics.repaired(&key.kind, &key.name);
        if limiter.is_notable() {
            warn!(target = %key, "{limiter}");
            let events = &self.context.events;
            events.warn(target, "Inject", "TargetContested", &limiter.to_string());
        }
    }

    /// Says once what keeps a target from its trust bundle.
    fn say(&self, target: &Value, key: &ObjectKey, problem: &str) {
        if self.announced.is_news(key, problem, None) {
            self.context
                .events
                .warn(target, "Inject", "NoTrustBundle", problem);
        }
    }
}
