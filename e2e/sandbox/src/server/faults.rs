//! Faults that tests inject into the server.

use std::collections::HashMap;

use parking_lot::Mutex;
use rand::{Rng, SeedableRng, rngs::StdRng};
use tokio::sync::watch;

use super::authentication::User;
use crate::StatusError;

/// A fault to inject.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The user whose requests fail.
    pub user: String,
    /// The probability, from 0 to 1.
    pub probability: f64,
    /// The HTTP status code of the response: 409, 410, 429, 500 or 503.
    pub code: u16,
    /// Whether the request is executed nevertheless, so that only its response is lost.
    pub carried_out: bool,
}

/// The active faults. The random generator is seeded, so that a run can be repeated.
pub struct Faults {
    state: Mutex<State>,
    paused: watch::Sender<bool>,
}

/// The fault that was injected into a request.
pub(super) struct InjectedFault {
    /// The response.
    pub(super) answer: StatusError,
    /// Whether the request is executed nevertheless.
    pub(super) carried_out: bool,
}

struct State {
    random: StdRng,
    faults: Vec<Fault>,
    cut_watches: u64,
    /// The resourceVersions of the Services whose pods are ignored, by uid; `None` while no pods are ignored.
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

    /// Removes all faults.
    pub fn clear(&self) {
        self.state.lock().faults.clear();
    }

    /// Ends all open watches.
    pub fn cut_watches(&self) {
        self.state.lock().cut_watches += 1;
    }

    /// Simulates hanging storage: delays every request and watch event until [`Faults::resume`].
    pub fn pause(&self) {
        self.paused.send_replace(true);
    }

    /// Ends [`Faults::pause`].
    pub fn resume(&self) {
        self.paused.send_replace(false);
    }

    /// Stops updating the endpoints of each Service until the Service is written, even if its pods change.
    /// This simulates watches of kube-controller-manager that are restored late.
    pub fn ignore_pods(&self) {
        self.state.lock().unwatched.get_or_insert_default();
    }

    /// Ends [`Faults::ignore_pods`].
    pub fn resume_pods(&self) {
        self.state.lock().unwatched = None;
    }

    /// Reports whether the endpoints of a Service are not updated: it was not written since
    /// [`Faults::ignore_pods`].
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

    /// Waits while storage hangs.
    pub(super) async fn wait_until_resumed(&self) {
        // This fails only after the sender is dropped, which `self` owns.
        let _ = self.paused.subscribe().wait_for(|paused| !paused).await;
    }

    /// Returns how often watches were cut. A watch ends when this changes.
    pub(super) fn cuts(&self) -> u64 {
        self.state.lock().cut_watches
    }

    /// Returns the fault to inject into this request, if any.
    pub(super) fn draw(&self, user: &User) -> Option<InjectedFault> {
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
                "a fault that the test injected into the sandbox",
            )
        };
        Some(InjectedFault {
            answer,
            carried_out: fault.carried_out,
        })
    }
}
