//! Where a rotation is, for its trace: by what the CA Secret holds, so that every process comes to the same.

use jiff::{SignedDuration, Timestamp};
use windlass_cluster::telemetry::traces::TracePhase;
use windlass_trust::rotation::{CaChange, CaState, RotationPhase, Step, Trust};

/// Where a rotation is. It begins when a CA begins to sign, and ends when the one after it is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RotationPosition {
    /// The number of the CA that has begun to sign, or is about to.
    pub(super) generation: u32,
    /// When it has.
    pub(super) started: Option<Timestamp>,
    /// How far it is.
    pub(super) phase: RotationPhase,
    /// When the CA after it was made, with which what comes after [`RotationPhase::Signing`] begins.
    pub(super) next_made: Option<Timestamp>,
}

// === impl RotationPosition ===

impl RotationPosition {
    /// What a plan for these CAs says, by its phase and steps; `None` in no rotation. The certificates of CAs begin `tolerance`
    /// before they are made. What is stored by another clock is not after `now`.
    pub(super) fn of(
        authorities: &CaState,
        phase: RotationPhase,
        steps: &[Step],
        tolerance: SignedDuration,
        now: Timestamp,
    ) -> Option<Self> {
        let beginning = steps.iter().find_map(|step| match step {
            Step::ChangeAuthorities { change, .. } => beginning(authorities, change),
            _ => None,
        });
        if let Some((generation, phase)) = beginning {
            return Some(Self {
                generation,
                started: Some(now),
                phase,
                next_made: None,
            });
        }
        let current = authorities.current.as_ref()?;
        let next = authorities.next.as_ref();
        let made = next.map(|next| {
            let not_before = next.certificate.validity.not_before;
            not_before
                .saturating_add(tolerance)
                .unwrap_or(not_before)
                .min(now)
        });
        // Another next CA is made where one is lost, and is waited for anew where it is urgent: both without a rotation.
        let is_after = next.is_some_and(|next| next.generation == current.generation + 1);
        let is_known = matches!(authorities.trust, Trust::Known(_));
        let is_of_rotation = match phase {
            RotationPhase::Stable | RotationPhase::Signing => true,
            RotationPhase::Retiring | RotationPhase::Distributing => is_after && !is_known,
        };
        is_of_rotation.then_some(Self {
            generation: current.generation,
            started: current.signs_since.map(|since| since.min(now)),
            phase,
            next_made: made.filter(|_| is_after),
        })
    }

    /// Its phases until now, each with when it has begun. The first CA of all has nothing to replace. Of a rotation that has ended,
    /// it is taken to have gone as most do.
    pub(super) fn phases(&self, now: Timestamp) -> Vec<(TracePhase, Timestamp)> {
        let started = self.started.unwrap_or(now);
        let next_made = self.next_made.unwrap_or(now).max(started);
        let signing = (trace_phase(RotationPhase::Signing), started);
        let is_first = self.generation == 1;
        match self.phase {
            RotationPhase::Signing => vec![signing],
            RotationPhase::Retiring | RotationPhase::Distributing if !is_first => {
                vec![signing, (trace_phase(self.phase), next_made)]
            }
            RotationPhase::Stable if !is_first => {
                vec![signing, (trace_phase(RotationPhase::Retiring), next_made)]
            }
            _ => vec![(trace_phase(RotationPhase::Distributing), started)],
        }
    }
}

/// The rotation that a change begins.
fn beginning(authorities: &CaState, change: &CaChange) -> Option<(u32, RotationPhase)> {
    match change {
        CaChange::Promote { .. } => {
            let next = authorities.next.as_ref()?;
            Some((next.generation, RotationPhase::Signing))
        }
        CaChange::Found {
            current: Some((current, _)),
            ..
        } => Some((current.generation, RotationPhase::Distributing)),
        _ => None,
    }
}

/// A phase as a span.
pub(super) fn trace_phase(phase: RotationPhase) -> TracePhase {
    let (number, name) = match phase {
        RotationPhase::Signing => (1, "Signing"),
        RotationPhase::Distributing => (2, "Distributing"),
        RotationPhase::Retiring => (3, "Retiring"),
        RotationPhase::Stable => (4, "Stable"),
    };
    TracePhase { number, name }
}

#[cfg(test)]
mod tests {
    use windlass_trust::{
        pki::Validity,
        rotation::{Ca, CaTemplate, CertificateId, Digest, Mark},
    };

    use super::*;

    const TOLERANCE: SignedDuration = SignedDuration::from_secs(10);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// A CA that was made then.
    fn ca(generation: u32, made: i64, signs_since: Option<i64>) -> Ca {
        Ca {
            generation,
            certificate: CertificateId {
                fingerprint: Digest([0; 32]),
                key_id: Digest([0; 20]),
                issuer_key_id: Digest([0; 20]),
                validity: validity(made),
            },
            signs_since: signs_since.map(at),
            has_key: true,
            as_asked: true,
        }
    }

    fn validity(made: i64) -> Validity {
        Validity {
            not_before: at(made) - TOLERANCE,
            not_after: at(made + 1000),
        }
    }

    fn cas(current: Ca, next: Option<Ca>, trust: Trust) -> CaState {
        CaState {
            current: Some(current),
            next,
            trust,
            ..CaState::default()
        }
    }

    /// The generation, and the phases with when they have begun.
    fn told(authorities: &CaState, phase: RotationPhase, steps: &[Step]) -> Option<(u32, String)> {
        let now = at(500);
        let position = RotationPosition::of(authorities, phase, steps, TOLERANCE, now)?;
        let phases = position.phases(now).into_iter();
        let phases: Vec<_> = phases
            .map(|(phase, since)| format!("{} {}", phase.name, since.as_second()))
            .collect();
        Some((position.generation, phases.join(", ")))
    }

    fn change(change: CaChange) -> [Step; 1] {
        let replacing = None;
        [Step::ChangeAuthorities { replacing, change }]
    }

    #[test]
    fn a_rotation_lasts_from_the_first_signature_until_the_ca_after_it_is_trusted() {
        let known = Trust::Known(Mark {
            run: 1,
            uptime: SignedDuration::ZERO,
        });
        let signing = cas(ca(2, 50, Some(200)), None, Trust::Distributing);
        let retiring = cas(ca(2, 50, Some(200)), Some(ca(3, 300, None)), Trust::Retiring);
        let stable = CaState {
            trust: known,
            ..retiring.clone()
        };
        for (authorities, phase, expected) in [
            (&signing, RotationPhase::Signing, "Signing 200"),
            (&retiring, RotationPhase::Retiring, "Signing 200, Retiring 300"),
            (
                &retiring,
                RotationPhase::Distributing,
                "Signing 200, Distributing 300",
            ),
            (&stable, RotationPhase::Stable, "Signing 200, Retiring 300"),
        ] {
            let told = told(authorities, phase, &[]);
            assert_eq!(told, Some((2, expected.to_owned())), "{phase:?}");
        }
        let promote = change(CaChange::Promote {
            at: at(500),
            cross: None,
        });
        let before = told(&stable, RotationPhase::Stable, &promote);
        assert_eq!(before, Some((3, "Signing 500".to_owned())));
    }

    #[test]
    fn the_first_ca_has_nothing_to_replace() {
        let template = |generation| CaTemplate {
            generation,
            validity: validity(500),
        };
        let found = change(CaChange::Found {
            current: Some((template(1), at(500))),
            next: template(2),
            retiring: Vec::new(),
            request: None,
        });
        let nothing = CaState::default();
        let first = told(&nothing, RotationPhase::Distributing, &found);
        assert_eq!(first, Some((1, "Distributing 500".to_owned())));
        let later = cas(ca(1, 400, Some(400)), Some(ca(2, 400, None)), Trust::Distributing);
        let later = told(&later, RotationPhase::Distributing, &[]);
        assert_eq!(later, Some((1, "Distributing 400".to_owned())));
    }

    /// It is over: the traces of before are told, and nothing else is of them.
    #[test]
    fn what_is_distributed_without_a_rotation_is_in_none() {
        let known = Trust::Known(Mark {
            run: 1,
            uptime: SignedDuration::ZERO,
        });
        let current = || ca(2, 50, Some(200));
        for authorities in [
            CaState::default(),
            // The next CA was lost, and another made.
            cas(current(), Some(ca(4, 300, None)), Trust::Distributing),
            cas(current(), None, Trust::Distributing),
            // It is known, and waited for where it is urgent.
            cas(current(), Some(ca(3, 300, None)), known),
        ] {
            let told = told(&authorities, RotationPhase::Distributing, &[]);
            assert_eq!(told, None, "{authorities:?}");
        }
    }
}
