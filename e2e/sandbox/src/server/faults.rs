//! Ways to make the server misbehave, for tests of those who must live with it.

use parking_lot::Mutex;
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::call::Target;
use crate::StatusError;

/// One way to misbehave.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The verbs that it hits; empty for all.
    pub verbs: Vec<String>,
    /// The resources that it hits; empty for all.
    pub resources: Vec<String>,
    /// How often, from 0 (never) to 1 (always).
    pub probability: f64,
    /// The HTTP status code that is answered: 409, 410, 429, 500 or 503.
    pub code: u16,
}

/// The faults in force. Draws are from a seeded generator, so that a run can be repeated.
pub struct Faults(Mutex<State>);

struct State {
    random: StdRng,
    faults: Vec<Fault>,
    cut_watches: u64,
}

impl Default for Faults {
    fn default() -> Self {
        Self(Mutex::new(State {
            random: StdRng::seed_from_u64(1),
            faults: Vec::new(),
            cut_watches: 0,
        }))
    }
}

impl Faults {
    /// Adds a fault.
    pub fn add(&self, fault: Fault) {
        self.0.lock().faults.push(fault);
    }

    /// Behaves well again.
    pub fn clear(&self) {
        self.0.lock().faults.clear();
    }

    /// Ends every watch that is open.
    pub fn cut_watches(&self) {
        self.0.lock().cut_watches += 1;
    }

    /// How often watches were cut: a watch ends when this changes.
    pub(super) fn cuts(&self) -> u64 {
        self.0.lock().cut_watches
    }

    /// Fails if a fault hits this request.
    pub(super) fn strike(&self, verb: &str, target: &Target) -> Result<(), StatusError> {
        let mut state = self.0.lock();
        let State { random, faults, .. } = &mut *state;
        let hits = |list: &[String], value: &str| list.is_empty() || list.iter().any(|entry| entry == value);
        let struck = faults.iter().find(|fault| {
            hits(&fault.verbs, verb)
                && hits(&fault.resources, &target.resource)
                && random.random_bool(fault.probability.clamp(0.0, 1.0))
        });
        let Some(fault) = struck else { return Ok(()) };
        let reason = match fault.code {
            409 => "Conflict",
            410 => "Expired",
            429 => "TooManyRequests",
            503 => "ServiceUnavailable",
            _ => "InternalError",
        };
        Err(StatusError {
            retry_after: (fault.code == 429).then_some(1),
            ..StatusError::new(
                fault.code,
                reason,
                "a fault of the sandbox, asked for by the test",
            )
        })
    }
}
