//! Position of a rotation for its trace, derived from the CA Secret so that every process computes the same.

use jiff::{SignedDuration, Timestamp};
use windlass_cluster::telemetry::traces::TracePhase;
use windlass_trust::rotation::{CaChange, CaState, RotationPhase, Step, Trust};

/// Position of a rotation, which starts when a CA starts to sign and ends when the CA after it is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RotationPosition {
    /// Number of the CA that has started to sign, or is about to.
    pub(super) generation: u32,
    /// When that CA started to sign.
    pub(super) started: Option<Timestamp>,
    pub(super) phase: RotationPhase,
    /// When the CA after it was created. Then the phase after [`RotationPhase::Signing`] starts.
    pub(super) next_made: Option<Timestamp>,
}

impl RotationPosition {
    /// Computes the position from the CAs and from the phase and steps of their plan. Returns `None` outside
    /// a rotation. The validity of a CA starts `tolerance` before its creation. Stored times are limited to
    /// `now`, since another clock may have written them.
    pub(super) fn from_plan(
        authorities: &CaState,
        phase: RotationPhase,
        steps: &[Step],
        tolerance: SignedDuration,
        now: Timestamp,
    ) -> Option<Self> {
        let rotation_start = steps.iter().find_map(|step| match step {
            Step::ChangeAuthorities { change, .. } => rotation_start(authorities, change),
            _ => None,
        });
        if let Some((generation, phase)) = rotation_start {
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
        // A lost next CA is replaced, and one that is urgently needed is awaited again, without a rotation.
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

    /// Returns the phases until now with their start times. The first CA replaces nothing, so it skips
    /// phases. A finished rotation is assumed to have had the usual phases.
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

/// Returns the rotation that a change starts.
fn rotation_start(authorities: &CaState, change: &CaChange) -> Option<(u32, RotationPhase)> {
    match change {
        CaChange::Promote { .. } => {
            let next = authorities.next.as_ref()?;
            Some((next.generation, RotationPhase::Signing))
        }
        CaChange::Create {
            current: Some((current, _)),
            ..
        } => Some((current.generation, RotationPhase::Distributing)),
        _ => None,
    }
}

/// Converts a rotation phase to the phase that its trace shows.
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

    /// A CA that was created at `made`.
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
            matches_spec: true,
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

    /// Returns the generation, and the phases with their start times.
    fn describe(authorities: &CaState, phase: RotationPhase, steps: &[Step]) -> Option<(u32, String)> {
        let now = at(500);
        let position = RotationPosition::from_plan(authorities, phase, steps, TOLERANCE, now)?;
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
    fn a_rotation_lasts_from_the_first_signature_until_the_following_ca_is_trusted() {
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
            let position = describe(authorities, phase, &[]);
            assert_eq!(position, Some((2, expected.to_owned())), "{phase:?}");
        }
        let promote = change(CaChange::Promote {
            at: at(500),
            cross: None,
        });
        let before = describe(&stable, RotationPhase::Stable, &promote);
        assert_eq!(before, Some((3, "Signing 500".to_owned())));
    }

    #[test]
    fn the_first_ca_only_has_the_phase_distributing() {
        let template = |generation| CaTemplate {
            generation,
            validity: validity(500),
        };
        let found = change(CaChange::Create {
            current: Some((template(1), at(500))),
            next: template(2),
            retiring: Vec::new(),
            request: None,
        });
        let nothing = CaState::default();
        let first = describe(&nothing, RotationPhase::Distributing, &found);
        assert_eq!(first, Some((1, "Distributing 500".to_owned())));
        let later = cas(ca(1, 400, Some(400)), Some(ca(2, 400, None)), Trust::Distributing);
        let later = describe(&later, RotationPhase::Distributing, &[]);
        assert_eq!(later, Some((1, "Distributing 400".to_owned())));
    }

    /// The rotation is over, so changes after it belong to no rotation.
    #[test]
    fn changes_outside_a_rotation_have_no_position() {
        let known = Trust::Known(Mark {
            run: 1,
            uptime: SignedDuration::ZERO,
        });
        let current = || ca(2, 50, Some(200));
        for authorities in [
            CaState::default(),
            // The next CA was lost and replaced.
            cas(current(), Some(ca(4, 300, None)), Trust::Distributing),
            cas(current(), None, Trust::Distributing),
            // The next CA is known and urgently needed.
            cas(current(), Some(ca(3, 300, None)), known),
        ] {
            let position = describe(&authorities, RotationPhase::Distributing, &[]);
            assert_eq!(position, None, "{authorities:?}");
        }
    }
}
