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
pub(super) struct Contests(Mutex<HashMap<ObjectKey, Contest>>);

/// A target that carries a trust bundle, and how often it was given back to it.
#[derive(Debug, PartialEq, Eq)]
struct Contest {
    injection: Arc<Injection>,
    limiter: RepairLimiter,
    /// The resourceVersion that our last write has made, where nothing is left to do after it.
    written_as: Option<String>,
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
    /// How a target may be written that lacks `trust`.
    pub(super) fn turn(
        &self,
        target: &ObjectKey,
        injection: &Arc<Injection>,
        uptime: SignedDuration,
        timing: &Timing,
    ) -> Turn {
        let contests = self.0.lock();
        match contests
            .get(target)
            .filter(|contest| contest.injection == *injection)
        {
            Some(contest) => contest
                .limiter
                .wait(uptime, timing)
                .map_or(Turn::Repair, Turn::Wait),
            None => Turn::Update,
        }
    }

    /// A target carries `trust`.
    pub(super) fn carries(
        &self,
        target: &ObjectKey,
        injection: &Arc<Injection>,
        uptime: SignedDuration,
        timing: &Timing,
    ) {
        let mut contests = self.0.lock();
        let contest = contests
            .entry(target.clone())
            .or_insert_with(|| Contest::of(injection));
        if contest.injection != *injection {
            contest.injection = injection.clone();
            contest.written_as = None;
        }
        if contest.limiter.is_over(uptime, timing) {
            contest.limiter = RepairLimiter::default();
        }
    }

    /// A target that carries what it should was written as `version`, and there is nothing left to do.
    pub(super) fn done(&self, target: &ObjectKey, version: String) {
        if let Some(contest) = self.0.lock().get_mut(target) {
            contest.written_as = Some(version);
        }
    }

    /// What a target carries that is as it was when it was [done](Self::done).
    pub(super) fn carried(&self, target: &ObjectKey, version: &str) -> Option<Arc<Injection>> {
        let contests = self.0.lock();
        let contest = contests.get(target)?;
        (contest.written_as.as_deref() == Some(version)).then(|| contest.injection.clone())
    }

    /// A target was given back `trust`, which `by` had taken from it. How often that was.
    pub(super) fn repaired(
        &self,
        target: &ObjectKey,
        injection: &Arc<Injection>,
        by: Option<&str>,
        uptime: SignedDuration,
        timing: &Timing,
    ) -> RepairLimiter {
        let mut contests = self.0.lock();
        let contest = contests
            .entry(target.clone())
            .or_insert_with(|| Contest::of(injection));
        contest.limiter.repaired(by.map(str::to_owned), uptime, timing);
        contest.limiter.clone()
    }

    /// Forgets a target that asks for nothing any more.
    pub(super) fn forget(&self, target: &ObjectKey) {
        self.0.lock().remove(target);
    }
}

// === impl Contest ===

impl Contest {
    fn of(injection: &Arc<Injection>) -> Self {
        Self {
            injection: injection.clone(),
            limiter: RepairLimiter::default(),
            written_as: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_cluster::kinds;
    use windlass_trust::{pki::sample, trust_bundle::TrustBundle};

    use super::*;

    fn trust(generation: u32) -> Arc<Injection> {
        let trust = TrustBundle::new([sample::authority(generation).certificate().clone()]);
        Arc::new(Injection::new(trust.unwrap(), None))
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
