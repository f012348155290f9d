//! What is remembered of targets between reconciliations.
//!
//! All of it may be lost with the process. Then a refused write is refused again, a client that removes trust
//! bundles is noticed again, and waits start again.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use jiff::SignedDuration;
use parking_lot::Mutex;
use windlass_object::ObjectKey;
use windlass_trust::rotation::{self, ClockReading, Mark, Observation, RepairLimiter, Timing, TrustSet};

use crate::injection::InjectionOutcome;

/// History of the targets of each ServingCertificate.
#[derive(Default)]
pub(super) struct Histories(Mutex<HashMap<ObjectKey, Targets>>);

/// The outcome of an injection.
pub(super) struct InjectionRecord<'a> {
    /// The ServingCertificate of the trust bundle.
    pub(super) certificate: &'a ObjectKey,
    pub(super) target: &'a ObjectKey,
    pub(super) trust: &'a TrustSet,
    /// Whether the target contained this trust bundle before. Determine it before the write, because a watch
    /// may deliver the write earlier than its response.
    pub(super) is_repair: bool,
    /// Field manager of the previous write.
    pub(super) by: Option<&'a str>,
    pub(super) injected: &'a InjectionOutcome,
    /// Time of the injection, on the monotonic clock.
    pub(super) uptime: SignedDuration,
    /// Pace of repairs.
    pub(super) timing: &'a Timing,
}

/// How long a watch may take to deliver a write of Windlass. A slower watch only causes a write that the API
/// server rejects.
const WATCH_DELAY: Duration = Duration::from_secs(10);

#[derive(Default)]
struct Targets {
    /// When a target was last observed without the next CA.
    regressed: Option<Mark>,
    each: HashMap<ObjectKey, History>,
}

#[derive(Default)]
struct History {
    /// Why the last write was refused. It is retried, but nothing waits for it.
    refused: Option<Refusal>,
    /// The trust bundle that the target contained, or got, last.
    carried: Option<TrustSet>,
    limiter: RepairLimiter,
    /// The resourceVersion on which Windlass based its last write, and when.
    written_from: Option<(String, Instant)>,
    /// The resourceVersion that the last write of Windlass created.
    written_as: Option<String>,
}

/// Why a target was not written.
struct Refusal {
    message: String,
    /// Since when writes are refused, on the monotonic clock.
    since: SignedDuration,
}

impl Histories {
    /// Adds the history to an observation of all targets, and updates it. `trust` is the trust bundle that
    /// targets should contain.
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

    /// Like [`complete`](Self::complete), for an observation of some targets.
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
            target.last_written.clone_from(&history.carried);
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

    /// Returns the trust bundle that a target contained, or got, last.
    pub(super) fn last_bundle(&self, certificate: &ObjectKey, target: &ObjectKey) -> Option<TrustSet> {
        let histories = self.0.lock();
        let history = histories.get(certificate)?.each.get(target)?;
        history.carried.clone()
    }

    /// Reports whether a target is unchanged since the last write of Windlass.
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

    /// Starts a write that is based on a resourceVersion. Returns `false` if one has already started from
    /// that version and the watch has not delivered its result yet: a reconciliation and a repair may handle
    /// the same change.
    pub(super) fn begin_write(
        &self,
        certificate: &ObjectKey,
        target: &ObjectKey,
        version: Option<&str>,
    ) -> bool {
        let Some(version) = version else { return true };
        let mut histories = self.0.lock();
        let targets = histories.entry(certificate.clone()).or_default();
        let written_from = &mut targets.each.entry(target.clone()).or_default().written_from;
        let is_unseen = |(from, at): &(String, Instant)| from == version && at.elapsed() < WATCH_DELAY;
        if written_from.as_ref().is_some_and(is_unseen) {
            return false;
        }
        *written_from = Some((version.to_owned(), Instant::now()));
        true
    }

    /// Allows a write that was [started](Self::begin_write) to be retried.
    pub(super) fn abandon_write(&self, certificate: &ObjectKey, target: &ObjectKey) {
        let mut histories = self.0.lock();
        let targets = histories.get_mut(certificate);
        if let Some(history) = targets.and_then(|targets| targets.each.get_mut(target)) {
            history.written_from = None;
        }
    }

    /// Records the outcome of an injection. For a repair, returns how often this target was repaired.
    pub(super) fn record(&self, record: &InjectionRecord<'_>) -> Option<RepairLimiter> {
        let InjectionRecord {
            certificate,
            target,
            trust,
            is_repair,
            by,
            injected,
            uptime,
            timing,
        } = *record;
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
        history
            .limiter
            .record_repair(by.map(str::to_owned), uptime, timing);
        Some(history.limiter.clone())
    }

    /// Forgets a deleted ServingCertificate.
    pub(super) fn forget(&self, certificate: &ObjectKey) {
        self.0.lock().remove(certificate);
    }
}
