//! One target, and the Secret that it asks for.

use std::{sync::Arc, time::Duration};

use jiff::SignedDuration;
use serde_json::Value;
use thiserror::Error;
use tracing::warn;
use windlass_cluster::{RequestError, lease::LeaderSince, worker::Action};
use windlass_object::ObjectKey;
use windlass_trust::{
    injection::{self, Injection, TargetPatch},
    rotation::Timing,
    trust_bundle::TrustBundle,
};

use super::{
    contests::{Contests, Turn},
    requests::requested_secret,
    secret::{is_of_serving_certificate, read_trust},
};
use crate::{
    context::Context,
    injection::{InjectionOutcome, inject},
    reporting::Announced,
};

/// Gives targets the `ca.crt` of Secrets.
pub(super) struct DirectInjector {
    pub(super) context: Arc<Context>,
    pub(super) timing: Timing,
    pub(super) contests: Contests,
    pub(super) announced: Announced,
    /// Repairs are counted from then.
    pub(super) since: LeaderSince,
}

/// Why a reconciliation has to be tried again.
#[derive(Debug, Error)]
#[error(transparent)]
pub(super) struct InjectDirectlyError(#[from] RequestError);

/// How often a target is looked at that nothing changes of: a CA ends, and a write that was refused may be allowed.
const LOOK: Duration = Duration::from_secs(600);

// === impl DirectInjector ===

impl DirectInjector {
    pub(super) async fn reconcile(self: Arc<Self>, key: ObjectKey) -> Result<Action, InjectDirectlyError> {
        let index = &self.context.index;
        let Some((target, secret_key)) = self.requesting(&key) else {
            return Ok(Action::AwaitChange);
        };
        let Some(secret) = index.find(&secret_key) else {
            return Ok(Action::AwaitChange);
        };
        let trust = match read_trust(&secret, &secret_key, self.context.clock.now()) {
            Ok(_) if is_of_serving_certificate(&secret, &secret_key, index) => {
                self.announced.forget(&key);
                return Ok(Action::AwaitChange);
            }
            Ok(trust) => trust,
            Err(problem) => {
                self.say(&target, &key, &problem);
                return Ok(Action::AwaitChange);
            }
        };
        match self.inject(&target, &key, &trust).await? {
            Some(wait) => Ok(Action::Requeue(wait.unsigned_abs())),
            None => Ok(Action::Requeue(LOOK)),
        }
    }

    /// Gives a target back what it lacks, for a leader that does not. What keeps it from that is the leader's to say.
    pub(super) async fn stand_in(self: Arc<Self>, key: ObjectKey) -> Result<Action, InjectDirectlyError> {
        let index = &self.context.index;
        let Some((target, secret_key)) = self.requesting(&key) else {
            return Ok(Action::AwaitChange);
        };
        let lacks_trust = |secret: &Value| {
            let trust = read_trust(secret, &secret_key, self.context.clock.now()).ok()?;
            let injection = Injection {
                trust: &trust,
                names: None,
            };
            let lacks_trust = matches!(injection.plan(&target), Ok(Some(TargetPatch::Inject(_))));
            let is_direct = !is_of_serving_certificate(secret, &secret_key, index);
            (lacks_trust && is_direct).then_some(trust)
        };
        if index
            .find(&secret_key)
            .and_then(|secret| lacks_trust(&secret))
            .is_none()
        {
            return Ok(Action::AwaitChange);
        }
        // A watch may be late.
        let secret = self.context.cluster.read(&secret_key).await?;
        let Some(trust) = secret.as_ref().and_then(lacks_trust) else {
            return Ok(Action::AwaitChange);
        };
        let wait = self.inject(&target, &key, &trust).await?;
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
        trust: &TrustBundle,
    ) -> Result<Option<SignedDuration>, InjectDirectlyError> {
        let injection = Injection { trust, names: None };
        // Counted before the write: a watch may be faster than the answer.
        let uptime = SignedDuration::try_from(self.since.elapsed()).unwrap_or(SignedDuration::MAX);
        let turn = self.contests.turn(key, trust, uptime, &self.timing);
        let lacks_trust = matches!(injection.plan(target), Ok(Some(TargetPatch::Inject(_))));
        if lacks_trust && let Turn::Wait(wait) = turn {
            return Ok(Some(wait));
        }
        let outcome = inject(&self.context.cluster, target, &injection).await?;
        match &outcome {
            InjectionOutcome::Refused(message) => self.say(target, key, message),
            InjectionOutcome::Unchanged | InjectionOutcome::Written => {
                self.contests.carries(key, trust, uptime, &self.timing);
                self.announced.forget(key);
            }
            InjectionOutcome::Overtaken | InjectionOutcome::Gone => {}
        }
        if outcome == InjectionOutcome::Written && lacks_trust && turn == Turn::Repair {
            self.count_repair(target, key, trust, uptime);
        }
        Ok(None)
    }

    /// Counts a repair, and says in an event from time to time whose writes are repaired.
    fn count_repair(&self, target: &Value, key: &ObjectKey, trust: &TrustBundle, uptime: SignedDuration) {
        let by = injection::last_writer(target);
        let limiter = self.contests.repaired(key, trust, by, uptime, &self.timing);
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
