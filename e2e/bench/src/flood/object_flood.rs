//! Many objects of a tenant: created, and rewritten.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use kube::Client;
use serde_json::Value;
use tokio::{sync::Semaphore, task::JoinSet};
use windlass_scenarios::request;

use super::calls::SharedCalls;

/// Many objects of a tenant.
pub(super) struct ObjectFlood {
    /// Where they are.
    pub(super) collection: String,
    /// How many.
    pub(super) count: u32,
    /// The one with a number, without its name.
    pub(super) object: Box<dyn Fn(u32) -> Value + Send + Sync>,
    /// The patch by which the one with a number is rewritten, by how often it was written before.
    pub(super) rewrite: Box<dyn Fn(u32, u32) -> Value + Send + Sync>,
}

/// How often each object is written. 500 Secrets of 1 MiB three times are what etcd takes in five minutes: API servers compact it no
/// more often, and it takes 2 GiB.
const ROUNDS: u32 = 3;

/// How many requests are under way at a time.
const AT_ONCE: usize = 8;

impl ObjectFlood {
    /// Writes every object [`ROUNDS`] times, evenly over `duration`; later, where the API server is slower.
    pub(super) async fn write(self: Arc<Self>, client: Client, duration: Duration, calls: SharedCalls) {
        let permits = Arc::new(Semaphore::new(AT_ONCE));
        let started = Instant::now();
        let mut writes = JoinSet::new();
        for step in 0..self.count * ROUNDS {
            tokio::time::sleep_until((started + due(step, self.count * ROUNDS, duration)).into()).await;
            let Ok(permit) = permits.clone().acquire_owned().await else {
                return;
            };
            let (flood, client, calls) = (self.clone(), client.clone(), calls.clone());
            writes.spawn(async move {
                flood
                    .send(&client, step % flood.count, step / flood.count, &calls)
                    .await;
                drop(permit);
            });
            while writes.try_join_next().is_some() {}
        }
        writes.join_all().await;
    }

    async fn send(&self, client: &Client, number: u32, round: u32, calls: &SharedCalls) {
        let (method, path, body) = if round == 0 {
            let mut object = (self.object)(number);
            object["metadata"]["name"] = name(number).into();
            ("POST", self.collection.clone(), object)
        } else {
            let path = format!("{}/{}", self.collection, name(number));
            ("PATCH", path, (self.rewrite)(number, round))
        };
        let sent = Instant::now();
        let answer = request::send(client, method, &path, Some(&body)).await;
        let mut calls = calls.lock();
        match answer {
            Ok(answer) if answer.code < 300 => calls.succeeded(sent.elapsed()),
            Ok(answer) => calls.failed(&answer.to_string()),
            Err(error) => calls.failed(&format!("{error:#}")),
        }
    }
}

fn name(number: u32) -> String {
    format!("flood-{number}")
}

/// When the write `step` of so many is due.
fn due(step: u32, steps: u32, duration: Duration) -> Duration {
    duration.mul_f64(f64::from(step) / f64::from(steps.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_of_the_time_is_for_creation() {
        let minute = Duration::from_secs(60);
        assert_eq!(due(0, 1500, minute), Duration::ZERO);
        assert_eq!(due(500, 1500, minute), minute / 3);
        assert!(due(1499, 1500, minute) < minute);
    }
}
