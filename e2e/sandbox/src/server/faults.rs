//! Ways to make the server misbehave, for tests of those who must live with it.

use std::collections::HashMap;

use parking_lot::Mutex;
use rand::{Rng, SeedableRng, rngs::StdRng};
use tokio::sync::watch;

use super::authentication::User;
use crate::StatusError;

/// One way to misbehave.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The user whose requests it hits.
    pub user: String,
    /// How often, from 0 (never) to 1 (always).
    pub probability: f64,
    /// The HTTP status code that is answered: 409, 410, 429, 500 or 503.
    pub code: u16,
    /// Whether the request is carried out all the same: then only its answer is lost.
    pub carried_out: bool,
}

/// The faults in force. Draws are from a seeded generator, so that a run can be repeated.
pub struct Faults {
    state: Mutex<State>,
    paused: watch::Sender<bool>,
}

/// What has hit a request.
pub(super) struct Strike {
    /// What is answered.
    pub(super) answer: StatusError,
    /// Whether the request is carried out all the same.
    pub(super) carried_out: bool,
}

struct State {
    random: StdRng,
    faults: Vec<Fault>,
    cut_watches: u64,
    /// The resourceVersions of the Services whose pods are not looked at, by uid; none while all are.
    unwatched: Option<HashMap<String, String>>,
}

impl Default for Faults {
    fn default() -> Self {
        let state = State {
            random: StdRng::seed_from_u64(1),
            faults: Vec::new(),
            cut_watches: 0,
            unwatched: None,
        };
        Self {
            state: Mutex::new(state),
            paused: watch::Sender::new(false),
        }
    }
}

impl Faults {
    /// Adds a fault.
    pub fn add(&self, fault: Fault) {
        self.state.lock().faults.push(fault);
    }

    /// Behaves well again.
    pub fn clear(&self) {
        self.state.lock().faults.clear();
    }

    /// Ends every watch that is open.
    pub fn cut_watches(&self) {
        self.state.lock().cut_watches += 1;
    }

    /// Lets every request wait, and every watch be silent, until [`Faults::resume`]: storage hangs.
    pub fn pause(&self) {
        self.paused.send_replace(true);
    }

    /// Lets all go on that waits.
    pub fn resume(&self) {
        self.paused.send_replace(false);
    }

    /// Lets the endpoints of each Service be as they are until the Service is written, whatever becomes of its pods: what
    /// kube-controller-manager may do when its watches come back late.
    pub fn ignore_pods(&self) {
        self.state.lock().unwatched.get_or_insert_default();
    }

    /// Looks after all endpoints again.
    pub fn resume_pods(&self) {
        self.state.lock().unwatched = None;
    }

    /// Whether the endpoints of a Service are left as they are: none was written since its pods are ignored.
    pub(crate) fn ignores_pods_of(&self, service: &str, resource_version: &str) -> bool {
        let mut state = self.state.lock();
        let Some(unwatched) = &mut state.unwatched else {
            return false;
        };
        let seen = unwatched
            .entry(service.to_owned())
            .or_insert_with(|| resource_version.to_owned());
        seen == resource_version
    }

    /// Waits for as long as storage hangs.
    pub(super) async fn resumed(&self) {
        // It fails only when the sender is gone, which is here.
        let _ = self.paused.subscribe().wait_for(|paused| !paused).await;
    }

    /// How often watches were cut: a watch ends when this changes.
    pub(super) fn cuts(&self) -> u64 {
        self.state.lock().cut_watches
    }

    /// What hits this request, if anything does.
    pub(super) fn strike(&self, user: &User) -> Option<Strike> {
        let mut state = self.state.lock();
        let State { random, faults, .. } = &mut *state;
        let fault = faults
            .iter()
            .find(|fault| fault.user == user.name && random.random_bool(fault.probability.clamp(0.0, 1.0)))?;
        let reason = match fault.code {
            409 => "Conflict",
            410 => "Expired",
            429 => "TooManyRequests",
            503 => "ServiceUnavailable",
            _ => "InternalError",
        };
        let answer = StatusError {
            retry_after: (fault.code == 429).then_some(1),
            ..StatusError::new(
                fault.code,
                reason,
                "a fault of the sandbox, asked for by the test",
            )
        };
        Some(Strike {
            answer,
            carried_out: fault.carried_out,
        })
    }
}
