//! What is remembered of targets, so that two who answer each other's writes cannot keep an API server busy. It may be
//! lost with the process.

use std::{collections::HashMap, sync::Arc};

use jiff::SignedDuration;
use parking_lot::Mutex;
use windlass_object::ObjectKey;
use windlass_trust::{
    injection::Injection,
    rotation::{RepairLimiter, Timing},
};

/// What is remembered of each target.
#[derive(Default)]
pub(super) struct Contests(Mutex<HashMap<ObjectKey, TargetContests>>);

/// What a target carries: a trust bundle for each set of sources that it asks for.
#[derive(Debug, Default)]
struct TargetContests {
    contests: Vec<Contest>,
    /// The resourceVersion that our last write has made, where nothing is left to do after it.
    written_as: Option<String>,
}

/// A trust bundle that a target carries, and how often it was given back to it.
#[derive(Debug)]
struct Contest {
    injection: Arc<Injection>,
    limiter: RepairLimiter,
}

/// How a target that lacks its trust bundle may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is to carry another trust bundle than before.
    Update,
    /// It is to be given back what it carried.
    Repair,
    /// The same, but only after so long.
    Wait(SignedDuration),
}

// === impl Contests ===

impl Contests {
    /// How a target may be written that lacks what `injection` brings.
    pub(super) fn turn(
        &self,
        target: &ObjectKey,
        injection: &Arc<Injection>,
        uptime: SignedDuration,
        timing: &Timing,
    ) -> Turn {
        let targets = self.0.lock();
        let mut contests = targets
            .get(target)
            .into_iter()
            .flat_map(|target| &target.contests);
        match contests.find(|contest| contest.injection == *injection) {
            Some(contest) => contest
                .limiter
                .wait(uptime, timing)
                .map_or(Turn::Repair, Turn::Wait),
            None => Turn::Update,
        }
    }

    /// A target carries what `injection` brings.
    pub(super) fn carries(
        &self,
        target: &ObjectKey,
        injection: &Arc<Injection>,
        uptime: SignedDuration,
        timing: &Timing,
    ) {
        let mut targets = self.0.lock();
        let target = targets.entry(target.clone()).or_default();
        let contest = target.contest(injection);
        if contest.limiter.is_over(uptime, timing) {
            contest.limiter = RepairLimiter::default();
        }
        if contest.injection != *injection {
            contest.injection = injection.clone();
            target.written_as = None;
        }
    }

    /// A target that carries what it should was written as `version`, and there is nothing left to do.
    pub(super) fn done(&self, target: &ObjectKey, version: String) {
        if let Some(target) = self.0.lock().get_mut(target) {
            target.written_as = Some(version);
        }
    }

    /// What a target carries that asks for one set of sources, and is as it was when it was [done](Self::done).
    pub(super) fn carried(&self, target: &ObjectKey, version: &str) -> Option<Arc<Injection>> {
        let targets = self.0.lock();
        let target = targets.get(target)?;
        let contest = target.contests.first()?;
        (target.written_as.as_deref() == Some(version)).then(|| contest.injection.clone())
    }

    /// A target was given back what `injection` brings, which `by` had taken from it. How often that was.
    pub(super) fn repaired(
        &self,
        target: &ObjectKey,
        injection: &Arc<Injection>,
        by: Option<&str>,
        uptime: SignedDuration,
        timing: &Timing,
    ) -> RepairLimiter {
        let mut targets = self.0.lock();
        let contest = targets.entry(target.clone()).or_default().contest(injection);
        contest.limiter.repaired(by.map(str::to_owned), uptime, timing);
        contest.limiter.clone()
    }

    /// Leaves of a target what it asks for still: these.
    pub(super) fn retain(&self, target: &ObjectKey, injections: &[Arc<Injection>]) {
        if let Some(target) = self.0.lock().get_mut(target) {
            let is_asked = |contest: &Contest| {
                injections
                    .iter()
                    .any(|one| one.is_for_the_same_as(&contest.injection))
            };
            target.contests.retain(is_asked);
        }
    }

    /// Forgets a target that asks for nothing any more.
    pub(super) fn forget(&self, target: &ObjectKey) {
        self.0.lock().remove(target);
    }
}

// === impl TargetContests ===

impl TargetContests {
    /// That about the places that `injection` is for.
    fn contest(&mut self, injection: &Arc<Injection>) -> &mut Contest {
        let known = self
            .contests
            .iter()
            .position(|contest| contest.injection.is_for_the_same_as(injection));
        let index = known.unwrap_or_else(|| {
            self.contests.push(Contest {
                injection: injection.clone(),
                limiter: RepairLimiter::default(),
            });
            self.contests.len() - 1
        });
        &mut self.contests[index]
    }
}

#[cfg(test)]
mod tests {
    use windlass_cluster::kinds;
    use windlass_trust::{injection::Reach, pki::sample, trust_bundle::TrustBundle};

    use super::*;

    fn trust(generation: u32) -> Arc<Injection> {
        let trust = TrustBundle::new([sample::authority(generation).certificate().clone()]);
        Arc::new(Injection::new(trust.unwrap(), Reach::everything()))
    }

    #[test]
    fn who_reacts_at_once_is_answered_once_in_an_interval() {
        let (contests, timing) = (Contests::default(), Timing::default());
        let target = kinds::API_SERVICE.object(None, "v1.example.com");
        let trust = trust(1);
        assert_eq!(
            contests.turn(&target, &trust, SignedDuration::ZERO, &timing),
            Turn::Update
        );
        contests.carries(&target, &trust, SignedDuration::ZERO, &timing);
        let mut repairs = 0;
        for tick in 0..6_000 {
            let uptime = SignedDuration::from_millis(20 * tick);
            if contests.turn(&target, &trust, uptime, &timing) == Turn::Repair {
                contests.repaired(&target, &trust, Some("other"), uptime, &timing);
                repairs += 1;
            }
        }
        let allowed = u64::from(timing.repair_burst) + 120;
        assert!(
            (120..=allowed).contains(&repairs),
            "{repairs} repairs in two minutes"
        );
    }

    #[test]
    fn another_trust_bundle_does_not_wait() {
        let (contests, timing) = (Contests::default(), Timing::default());
        let target = kinds::API_SERVICE.object(None, "v1.example.com");
        let at = SignedDuration::from_secs(1);
        let (one, other) = (trust(1), trust(2));
        contests.carries(&target, &one, at, &timing);
        for _ in 0..timing.repair_burst {
            contests.repaired(&target, &one, None, at, &timing);
        }
        assert!(matches!(contests.turn(&target, &one, at, &timing), Turn::Wait(_)));
        assert_eq!(contests.turn(&target, &other, at, &timing), Turn::Update);
        contests.carries(&target, &other, at, &timing);
        assert!(matches!(
            contests.turn(&target, &other, at, &timing),
            Turn::Wait(_)
        ));
        let quiet = at + timing.contested_ttl + timing.repair_interval * 100;
        contests.carries(&target, &other, quiet, &timing);
        assert_eq!(contests.turn(&target, &other, quiet, &timing), Turn::Repair);
    }
}
