//! Limits the repairs of targets, so that Windlass and another injector that revert each other's writes
//! cannot overload the API server. This state may be lost with the process.

use std::{collections::HashMap, sync::Arc};

use jiff::SignedDuration;
use parking_lot::Mutex;
use windlass_object::ObjectKey;
use windlass_trust::{
    injection::Injection,
    rotation::{RepairLimiter, Timing},
};

/// Repairs of each target.
#[derive(Default)]
pub(super) struct InjectionConflicts(Mutex<HashMap<ObjectKey, TargetConflicts>>);

/// The trust bundles of a target, one for each set of sources that it requests.
#[derive(Debug, Default)]
struct TargetConflicts {
    conflicts: Vec<InjectionConflict>,
    /// The resourceVersion that Windlass wrote last, if the target then needed nothing else.
    written_as: Option<String>,
}

/// A trust bundle that a target contains, and its repairs.
#[derive(Debug)]
struct InjectionConflict {
    injection: Arc<Injection>,
    limiter: RepairLimiter,
}

/// Whether a target that lacks a trust bundle may be written now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteDecision {
    /// The target gets a new trust bundle.
    Update,
    /// The target lost its trust bundle, which may be restored now.
    Repair,
    /// The target lost its trust bundle, which may be restored after this time.
    Wait(SignedDuration),
}

impl InjectionConflicts {
    /// Returns whether a target that lacks `injection` may be written now.
    pub(super) fn decide(
        &self,
        target: &ObjectKey,
        injection: &Arc<Injection>,
        uptime: SignedDuration,
        timing: &Timing,
    ) -> WriteDecision {
        let targets = self.0.lock();
        let mut conflicts = targets
            .get(target)
            .into_iter()
            .flat_map(|target| &target.conflicts);
        match conflicts.find(|conflict| conflict.injection == *injection) {
            Some(conflict) => conflict
                .limiter
                .wait(uptime, timing)
                .map_or(WriteDecision::Repair, WriteDecision::Wait),
            None => WriteDecision::Update,
        }
    }

    /// Records that a target contains `injection`.
    pub(super) fn record_present(
        &self,
        target: &ObjectKey,
        injection: &Arc<Injection>,
        uptime: SignedDuration,
        timing: &Timing,
    ) {
        let mut targets = self.0.lock();
        let target = targets.entry(target.clone()).or_default();
        let conflict = target.entry(injection);
        if conflict.limiter.is_over(uptime, timing) {
            conflict.limiter = RepairLimiter::default();
        }
        if conflict.injection != *injection {
            conflict.injection = injection.clone();
            target.written_as = None;
        }
    }

    /// Records that a target was written as `version` and needs nothing else.
    pub(super) fn record_complete(&self, target: &ObjectKey, version: String) {
        if let Some(target) = self.0.lock().get_mut(target) {
            target.written_as = Some(version);
        }
    }

    /// Returns the injection of a target that requests one set of sources, if it is unchanged since
    /// [`record_complete`](Self::record_complete).
    pub(super) fn complete_injection(&self, target: &ObjectKey, version: &str) -> Option<Arc<Injection>> {
        let targets = self.0.lock();
        let target = targets.get(target)?;
        let conflict = target.conflicts.first()?;
        (target.written_as.as_deref() == Some(version)).then(|| conflict.injection.clone())
    }

    /// Records that `injection` was restored after `by` had removed it. Returns the number of repairs.
    pub(super) fn record_repair(
        &self,
        target: &ObjectKey,
        injection: &Arc<Injection>,
        by: Option<&str>,
        uptime: SignedDuration,
        timing: &Timing,
    ) -> RepairLimiter {
        let mut targets = self.0.lock();
        let conflict = targets.entry(target.clone()).or_default().entry(injection);
        conflict
            .limiter
            .record_repair(by.map(str::to_owned), uptime, timing);
        conflict.limiter.clone()
    }

    /// Forgets all injections of a target except these, which it still requests.
    pub(super) fn retain(&self, target: &ObjectKey, injections: &[Arc<Injection>]) {
        if let Some(target) = self.0.lock().get_mut(target) {
            let is_asked = |conflict: &InjectionConflict| {
                injections
                    .iter()
                    .any(|one| one.has_same_scope(&conflict.injection))
            };
            target.conflicts.retain(is_asked);
        }
    }

    /// Forgets a target that requests nothing.
    pub(super) fn forget(&self, target: &ObjectKey) {
        self.0.lock().remove(target);
    }
}

impl TargetConflicts {
    /// Returns the entry for the fields of `injection`.
    fn entry(&mut self, injection: &Arc<Injection>) -> &mut InjectionConflict {
        let known = self
            .conflicts
            .iter()
            .position(|conflict| conflict.injection.has_same_scope(injection));
        let index = known.unwrap_or_else(|| {
            self.conflicts.push(InjectionConflict {
                injection: injection.clone(),
                limiter: RepairLimiter::default(),
            });
            self.conflicts.len() - 1
        });
        &mut self.conflicts[index]
    }
}

#[cfg(test)]
mod tests {
    use windlass_cluster::kinds;
    use windlass_trust::{injection::InjectionScope, pki::sample, trust_bundle::TrustBundle};

    use super::*;

    fn trust(generation: u32) -> Arc<Injection> {
        let trust = TrustBundle::new([sample::authority(generation).certificate().clone()]);
        Arc::new(Injection::new(trust.unwrap(), InjectionScope::everything()))
    }

    #[test]
    fn an_injector_that_reverts_immediately_is_answered_once_per_interval() {
        let (conflicts, timing) = (InjectionConflicts::default(), Timing::default());
        let target = kinds::API_SERVICE.object(None, "v1.example.com");
        let trust = trust(1);
        assert_eq!(
            conflicts.decide(&target, &trust, SignedDuration::ZERO, &timing),
            WriteDecision::Update
        );
        conflicts.record_present(&target, &trust, SignedDuration::ZERO, &timing);
        let mut repairs = 0;
        for tick in 0..6_000 {
            let uptime = SignedDuration::from_millis(20 * tick);
            if conflicts.decide(&target, &trust, uptime, &timing) == WriteDecision::Repair {
                conflicts.record_repair(&target, &trust, Some("other"), uptime, &timing);
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
    fn a_new_trust_bundle_is_written_without_delay() {
        let (conflicts, timing) = (InjectionConflicts::default(), Timing::default());
        let target = kinds::API_SERVICE.object(None, "v1.example.com");
        let at = SignedDuration::from_secs(1);
        let (one, other) = (trust(1), trust(2));
        conflicts.record_present(&target, &one, at, &timing);
        for _ in 0..timing.repair_burst {
            conflicts.record_repair(&target, &one, None, at, &timing);
        }
        assert!(matches!(
            conflicts.decide(&target, &one, at, &timing),
            WriteDecision::Wait(_)
        ));
        assert_eq!(
            conflicts.decide(&target, &other, at, &timing),
            WriteDecision::Update
        );
        conflicts.record_present(&target, &other, at, &timing);
        assert!(matches!(
            conflicts.decide(&target, &other, at, &timing),
            WriteDecision::Wait(_)
        ));
        let quiet = at + timing.contested_ttl + timing.repair_interval * 100;
        conflicts.record_present(&target, &other, quiet, &timing);
        assert_eq!(
            conflicts.decide(&target, &other, quiet, &timing),
            WriteDecision::Repair
        );
    }
}
