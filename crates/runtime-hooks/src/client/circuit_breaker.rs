//! A circuit breaker for servers that do not answer.

use std::{sync::Arc, time::Duration};

use moka::sync::Cache;
use parking_lot::Mutex;
use tokio::time::Instant;
use webhook_transport::ServerReference;

/// When to stop calling a server, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitBreaker {
    /// The number of consecutive calls without an answer that opens the circuit.
    pub failures: u32,
    /// How long an open circuit blocks calls. Then one trial call is allowed: an answer closes the circuit, a
    /// failure blocks it for twice as long.
    pub pause: Duration,
    /// The longest time that a circuit blocks calls.
    pub longest_pause: Duration,
}

/// The circuits of all servers.
#[derive(Clone, Debug)]
pub(super) struct Circuits {
    breaker: Option<CircuitBreaker>,
    servers: Cache<ServerReference, Arc<Mutex<Circuit>>>,
}

/// Permission for a call. If it is dropped without a report, the call does not count.
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
    /// A trial call is active.
    has_trial: bool,
}

/// The maximum number of servers to track.
const SERVERS: u64 = 4096;

/// How long a server that is not called is tracked.
const IDLE: Duration = Duration::from_secs(600);

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self {
            failures: 5,
            pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(30),
        }
    }
}

impl Circuits {
    /// Creates circuits; without a breaker all calls are permitted.
    pub(super) fn new(breaker: Option<CircuitBreaker>) -> Self {
        let servers = Cache::builder().max_capacity(SERVERS).time_to_idle(IDLE).build();
        Self { breaker, servers }
    }

    /// Permits a call to a server.
    ///
    /// # Errors
    ///
    /// How long the circuit still blocks calls.
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
            if !wait.is_zero() || open.has_trial {
                return Err(wait);
            }
            open.has_trial = true;
        }
        Ok(Permit {
            breaker,
            circuit: Some(circuit),
        })
    }
}

impl Permit {
    /// Reports whether the server has answered, with whatever answer.
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
            // Failures of calls that started before the circuit opened do not count again.
            Some(open) if !open.has_trial => return,
            Some(open) => (open.pause * 2).min(self.breaker.longest_pause),
            None => self.breaker.pause,
        };
        circuit.open = Some(Open {
            until: Instant::now() + pause,
            pause,
            has_trial: false,
        });
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(circuit) = self.circuit.take()
            && let Some(open) = &mut circuit.lock().open
        {
            open.has_trial = false;
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
    async fn an_open_circuit_allows_one_trial_call() {
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
    async fn a_dropped_trial_call_does_not_count() {
        let circuits = Circuits::new(Some(BREAKER));
        let dead = server("dead");
        fail(&circuits, &dead);
        fail(&circuits, &dead);
        tokio::time::advance(Duration::from_secs(1)).await;
        drop(circuits.admit(&dead).unwrap());
        assert!(circuits.admit(&dead).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn earlier_calls_do_not_prolong_the_pause() {
        let circuits = Circuits::new(Some(BREAKER));
        let dead = server("dead");
        let under_way: Vec<_> = (0..10).map(|_| circuits.admit(&dead).unwrap()).collect();
        for call in under_way {
            call.report(false);
        }
        assert_eq!(circuits.admit(&dead).unwrap_err(), Duration::from_secs(1));
    }

    #[test]
    fn without_a_breaker_every_call_is_permitted() {
        let circuits = Circuits::new(None);
        (0..100).for_each(|_| fail(&circuits, &server("dead")));
        assert!(circuits.admit(&server("dead")).is_ok());
    }
}
