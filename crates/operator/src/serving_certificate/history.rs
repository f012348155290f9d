//! What is remembered of targets from one reconciliation to the next.
//!
//! All of it may be lost with the process: a write that was refused is refused again, somebody who takes trust bundles away
//! does so again, and a wait begins again with each process.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use jiff::SignedDuration;
use parking_lot::Mutex;
use windlass_object::ObjectKey;
use windlass_trust::rotation::{self, ClockReading, Mark, Observation, RepairLimiter, Timing, TrustSet};

use crate::injection::InjectionOutcome;

/// What is remembered of the targets of each ServingCertificate.
#[derive(Default)]
pub(super) struct Histories(Mutex<HashMap<ObjectKey, Targets>>);

/// What became of an injection.
pub(super) struct Overwrite<'a> {
    /// Whose trust bundle it was.
    pub(super) certificate: &'a ObjectKey,
    /// What it went into.
    pub(super) target: &'a ObjectKey,
    /// The trust bundle.
    pub(super) trust: &'a TrustSet,
    /// Whether the target had carried it before: to be asked before it is written, because watches may be faster than
    /// the answer.
    pub(super) is_repair: bool,
    /// Who wrote the target before.
    pub(super) by: Option<&'a str>,
    /// What became of it.
    pub(super) injected: &'a InjectionOutcome,
    /// When that was, on the steady clock.
    pub(super) uptime: SignedDuration,
    /// The pace of repairs.
    pub(super) timing: &'a Timing,
}

/// How long a watch may take to show a write of ours. One that takes longer costs a write that the API server refuses.
const UNSEEN: Duration = Duration::from_secs(10);

#[derive(Default)]
struct Targets {
    /// When one of them was last seen without the next CA.
    regressed: Option<Mark>,
    each: HashMap<ObjectKey, History>,
}

#[derive(Default)]
struct History {
    /// Why the last write was refused: it is tried again, but nothing waits for it.
    refused: Option<Refusal>,
    /// The trust bundle that it carried, or was given, last.
    carried: Option<TrustSet>,
    limiter: RepairLimiter,
    /// The resourceVersion from which a write of ours has begun last, and when.
    written_from: Option<(String, Instant)>,
    /// The resourceVersion that our last write has made.
    written_as: Option<String>,
}

/// Why a target was not written.
struct Refusal {
    message: String,
    /// Since when writes are refused, on the steady clock.
    since: SignedDuration,
}

// === impl Histories ===

impl Histories {
    /// Completes an observation of all targets with what is remembered, and remembers what it shows. `trust` is what
    /// targets are to carry.
    pub(super) fn complete(
        &self,
        certificate: &ObjectKey,
        observation: &mut Observation,
        trust: &TrustSet,
        timing: &Timing,
    ) {
        if let Some(targets) = self.0.lock().get_mut(certificate) {
            let asking: HashSet<_> = observation.targets.iter().map(|target| &target.id).collect();
            targets.each.retain(|id, _| asking.contains(id));
        }
        self.complete_some(certificate, observation, trust, timing);
    }

    /// The same for an observation of some of the targets.
    pub(super) fn complete_some(
        &self,
        certificate: &ObjectKey,
        observation: &mut Observation,
        trust: &TrustSet,
        timing: &Timing,
    ) {
        let ClockReading { mark, .. } = observation.clock;
        let mut histories = self.0.lock();
        let targets = histories.entry(certificate.clone()).or_default();
        for target in &mut observation.targets {
            let history = targets.each.entry(target.id.clone()).or_default();
            if target.bundle.as_ref() == Some(trust) {
                history.carried = Some(trust.clone());
            }
            if history.limiter.is_over(mark.uptime, timing) {
                history.limiter = RepairLimiter::default();
            }
            target.given.clone_from(&history.carried);
            if let Some(refusal) = &history.refused {
                let refused_for = mark.uptime - refusal.since;
                let newest = observation
                    .refused_for
                    .map_or(refused_for, |known| known.min(refused_for));
                observation.refused_for = Some(newest);
                target.refused.get_or_insert_with(|| refusal.message.clone());
            }
            target.contested = history.limiter.report(mark.uptime, timing);
        }
        if rotation::has_regressed(observation, timing) {
            targets.regressed = Some(mark);
        }
        observation.regressed = targets.regressed;
    }

    /// The trust bundle that a target carried, or was given, last.
    pub(super) fn carried(&self, certificate: &ObjectKey, target: &ObjectKey) -> Option<TrustSet> {
        let histories = self.0.lock();
        let history = histories.get(certificate)?.each.get(target)?;
        history.carried.clone()
    }

    /// Whether a target is still as our last write has made it.
    pub(super) fn is_as_written(
        &self,
        certificate: &ObjectKey,
        target: &ObjectKey,
        version: Option<&str>,
    ) -> bool {
        let histories = self.0.lock();
        let history = histories
            .get(certificate)
            .and_then(|targets| targets.each.get(target));
        let written = history.and_then(|history| history.written_as.as_deref());
        written.is_some() && written == version
    }

    /// Begins to write a target as it was seen at a resourceVersion; `false` where that was begun before, and no watch has shown
    /// yet what came of it: a reconciliation and a repair may be about the same change.
    pub(super) fn begin(&self, certificate: &ObjectKey, target: &ObjectKey, version: Option<&str>) -> bool {
        let Some(version) = version else { return true };
        let mut histories = self.0.lock();
        let targets = histories.entry(certificate.clone()).or_default();
        let written_from = &mut targets.each.entry(target.clone()).or_default().written_from;
        let is_unseen = |(from, at): &(String, Instant)| from == version && at.elapsed() < UNSEEN;
        if written_from.as_ref().is_some_and(is_unseen) {
            return false;
        }
        *written_from = Some((version.to_owned(), Instant::now()));
        true
    }

    /// What was [begun](Self::begin) may be tried again.
    pub(super) fn abandon(&self, certificate: &ObjectKey, target: &ObjectKey) {
        let mut histories = self.0.lock();
        let targets = histories.get_mut(certificate);
        if let Some(history) = targets.and_then(|targets| targets.each.get_mut(target)) {
            history.written_from = None;
        }
    }

    /// Notes what became of an injection. Where it gave back what the target had carried before: how often that was.
    pub(super) fn note(&self, overwrite: &Overwrite<'_>) -> Option<RepairLimiter> {
        let Overwrite {
            certificate,
            target,
            trust,
            is_repair,
            by,
            injected,
            uptime,
            timing,
        } = *overwrite;
        let mut histories = self.0.lock();
        let targets = histories.entry(certificate.clone()).or_default();
        let history = targets.each.entry(target.clone()).or_default();
        let since = history.refused.take().map_or(uptime, |refusal| refusal.since);
        if let InjectionOutcome::Refused(message) = injected {
            let message = message.clone();
            history.refused = Some(Refusal { message, since });
        }
        let InjectionOutcome::Written(version) = injected else {
            history.written_from = None;
            return None;
        };
        history.written_as.clone_from(version);
        history.carried = Some(trust.clone());
        if !is_repair {
            return None;
        }
        history.limiter.repaired(by.map(str::to_owned), uptime, timing);
        Some(history.limiter.clone())
    }

    /// Forgets a ServingCertificate that is gone.
    pub(super) fn forget(&self, certificate: &ObjectKey) {
        self.0.lock().remove(certificate);
    }
}
