//! Leaving servers alone for a while that do not answer.

use std::{sync::Arc, time::Duration};

use moka::sync::Cache;
use parking_lot::Mutex;
use tokio::time::Instant;
use webhook_transport::ServerReference;

/// When a server is left alone, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitBreaker {
    /// After so many calls in a row without an answer nobody calls it.
    pub failures: u32,
    /// How long nobody calls it then. One call is let through after that: with an answer all are, without one it is left alone twice
    /// as long.
    pub pause: Duration,
    /// The longest that nobody calls it.
    pub longest_pause: Duration,
}

/// What is known of each server.
#[derive(Clone, Debug)]
pub(super) struct Circuits {
    breaker: Option<CircuitBreaker>,
    servers: Cache<ServerReference, Arc<Mutex<Circuit>>>,
}

/// A call that may be made. Dropped without a word, it says nothing about the server.
#[derive(Debug)]
pub(super) struct Permit {
    breaker: CircuitBreaker,
    circuit: Option<Arc<Mutex<Circuit>>>,
}

#[derive(Debug, Default)]
struct Circuit {
    failures: u32,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    until: Instant,
    pause: Duration,
    /// Somebody is trying whether it answers again.
    is_tried: bool,
}

/// The most servers of which something is known.
const SERVERS: u64 = 4096;

/// How long something is known of a server that nobody calls.
const IDLE: Duration = Duration::from_secs(600);

// === impl CircuitBreaker ===

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self {
            failures: 5,
            pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(30),
        }
    }
}

// === impl Circuits ===

impl Circuits {
    /// Without a breaker every call may be made.
    pub(super) fn new(breaker: Option<CircuitBreaker>) -> Self {
        let servers = Cache::builder().max_capacity(SERVERS).time_to_idle(IDLE).build();
        Self { breaker, servers }
    }

    /// Whether a server may be called now.
    ///
    /// # Errors
    ///
    /// How long it is left alone yet.
    pub(super) fn admit(&self, server: &ServerReference) -> Result<Permit, Duration> {
        let Some(breaker) = self.breaker else {
            let breaker = CircuitBreaker::default();
            return Ok(Permit {
                breaker,
                circuit: None,
            });
        };
        let circuit = self.servers.get_with_by_ref(server, Arc::default);
        if let Some(open) = &mut circuit.lock().open {
            let wait = open.until.saturating_duration_since(Instant::now());
            if !wait.is_zero() || open.is_tried {
                return Err(wait);
            }
            open.is_tried = true;
        }
        Ok(Permit {
            breaker,
            circuit: Some(circuit),
        })
    }
}

// === impl Permit ===

impl Permit {
    /// Says whether the server has answered, whatever it said.
    pub(super) fn report(mut self, answered: bool) {
        let Some(circuit) = self.circuit.take() else {
            return;
        };
        let mut circuit = circuit.lock();
        if answered {
            *circuit = Circuit::default();
            return;
        }
        circuit.failures = circuit.failures.saturating_add(1);
        if circuit.failures < self.breaker.failures {
            return;
        }
        let pause = match &circuit.open {
            // Calls that were under way when it was opened say nothing new.
            Some(open) if !open.is_tried => return,
            Some(open) => (open.pause * 2).min(self.breaker.longest_pause),
            None => self.breaker.pause,
        };
        circuit.open = Some(Open {
            until: Instant::now() + pause,
            pause,
            is_tried: false,
        });
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(circuit) = self.circuit.take()
            && let Some(open) = &mut circuit.lock().open
        {
            open.is_tried = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BREAKER: CircuitBreaker = CircuitBreaker {
        failures: 2,
        pause: Duration::from_secs(1),
        longest_pause: Duration::from_secs(3),
    };

    fn server(name: &str) -> ServerReference {
        ServerReference::service("system", name, 443, "", "").unwrap()
    }

    fn fail(circuits: &Circuits, server: &ServerReference) {
        circuits.admit(server).unwrap().report(false);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_answer_is_left_alone_and_tried_by_one() {
        let circuits = Circuits::new(Some(BREAKER));
        let dead = server("dead");
        fail(&circuits, &dead);
        circuits.admit(&dead).unwrap().report(true);
        fail(&circuits, &dead);
        fail(&circuits, &dead);
        for pause in [1, 2, 3, 3] {
            assert_eq!(circuits.admit(&dead).unwrap_err(), Duration::from_secs(pause));
            assert!(circuits.admit(&server("other")).is_ok());
            tokio::time::advance(Duration::from_secs(pause)).await;
            let trial = circuits.admit(&dead).unwrap();
            assert!(circuits.admit(&dead).is_err(), "one is enough");
            trial.report(false);
        }
        tokio::time::advance(Duration::from_secs(3)).await;
        circuits.admit(&dead).unwrap().report(true);
        let all = [circuits.admit(&dead), circuits.admit(&dead)];
        assert!(all.iter().all(Result::is_ok));
    }

    #[tokio::test(start_paused = true)]
    async fn a_trial_that_is_given_up_says_nothing() {
        let circuits = Circuits::new(Some(BREAKER));
        let dead = server("dead");
        fail(&circuits, &dead);
        fail(&circuits, &dead);
        tokio::time::advance(Duration::from_secs(1)).await;
        drop(circuits.admit(&dead).unwrap());
        assert!(circuits.admit(&dead).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_were_under_way_do_not_prolong_the_pause() {
        let circuits = Circuits::new(Some(BREAKER));
        let dead = server("dead");
        let under_way: Vec<_> = (0..10).map(|_| circuits.admit(&dead).unwrap()).collect();
        for call in under_way {
            call.report(false);
        }
        assert_eq!(circuits.admit(&dead).unwrap_err(), Duration::from_secs(1));
    }

    #[test]
    fn without_a_breaker_every_call_is_made() {
        let circuits = Circuits::new(None);
        (0..100).for_each(|_| fail(&circuits, &server("dead")));
        assert!(circuits.admit(&server("dead")).is_ok());
    }
}
