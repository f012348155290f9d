//! Runs the election: reads the Lease, writes decisions, and publishes the outcome.

use std::time::Duration;

use rand::Rng;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::{sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use windlass_object::{ObjectKey, names};

use super::{Candidate, Decision, LeaderElectionRecord, LeaderTerm, Leadership, Moment, ReadLeaseError};
use crate::{
    events::Events,
    kind::kinds,
    requests::{Cluster, RequestError},
    telemetry::chain,
};

/// Takes part in the election for one Lease.
pub struct Elector {
    cluster: Cluster,
    lease: ObjectKey,
    candidate: Candidate,
    claims: watch::Sender<Option<LeaderTerm>>,
    /// The candidate's last write of the Lease.
    written: Option<Value>,
    /// The last announced leader.
    announced: Option<String>,
}

/// Why this process no longer leads.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum LeadershipLost {
    /// The Lease was not renewed in time: requests failed, or this process was suspended.
    #[error(
        "lost {lease}: not renewed within {}s; exiting", .deadline.as_secs_f32()
    )]
    Expired {
        lease: ObjectKey,
        /// The duration of the attempts.
        deadline: Duration,
        /// Why the last attempt failed, if there was one.
        #[source]
        last: Option<AttemptError>,
    },
    /// Another candidate holds the Lease.
    #[error("lost {lease} to {holder}; exiting")]
    Taken {
        lease: ObjectKey,
        /// The current holder.
        holder: String,
    },
}

/// Why an attempt failed.
#[derive(Debug, Error)]
pub enum AttemptError {
    /// The Lease cannot be read or written.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The Lease is invalid.
    #[error(transparent)]
    Read(#[from] ReadLeaseError),
    /// The request timed out.
    #[error("timed out waiting for the API server")]
    Slow,
}

/// The outcome of an attempt.
enum Attempt {
    /// The candidate has acquired or renewed the Lease.
    Leads,
    /// Another candidate holds the Lease.
    Waits { holder: String, remaining: Duration },
    /// The candidate's claim has expired before it could be renewed.
    Expired,
}

/// The name of the Lease of processes that run all controllers or those of bundles, in the operator's
/// namespace.
pub const LEASE: &str = "windlass";

/// The number of attempts to release the Lease at shutdown.
const RELEASE_ATTEMPTS: usize = 3;

impl Elector {
    /// Creates an elector of `candidate` for the Lease `name` in `namespace`. `cluster` must not be fenced by
    /// its outcome, and must not retry.
    pub fn new(cluster: Cluster, namespace: &str, name: &str, candidate: Candidate) -> (Self, Leadership) {
        let (claims, receiver) = watch::channel(None);
        let leadership = Leadership::elected(candidate.identity().to_owned(), receiver);
        let elector = Self {
            cluster,
            lease: kinds::LEASE.object(Some(namespace), name),
            candidate,
            claims,
            written: None,
            announced: None,
        };
        (elector, leadership)
    }

    /// Takes part in the election until `released`, then releases the Lease. After that nothing may be
    /// written.
    ///
    /// # Errors
    ///
    /// When this process has led, and no longer leads.
    pub async fn run(mut self, events: Events, released: CancellationToken) -> Result<(), LeadershipLost> {
        let mut failures = 0;
        let mut last = None;
        while !released.is_cancelled() {
            let now = Moment::now();
            if self.candidate.has_expired(now) {
                return Err(self.expired(last));
            }
            let attempt = timeout(self.attempt_timeout(now), self.attempt());
            // Shutdown waits for a running attempt: an unconfirmed write would delay other candidates.
            let pause = match attempt.await.unwrap_or(Err(AttemptError::Slow)) {
                Ok(Attempt::Leads) => {
                    self.announce_lead(&events);
                    (failures, last) = (0, None);
                    self.candidate.timing().retry_period.mul_f64(jitter())
                }
                Ok(Attempt::Waits { holder, .. }) if self.candidate.claim().is_some() => {
                    self.claims.send_replace(None);
                    let lease = self.lease;
                    return Err(LeadershipLost::Taken { lease, holder });
                }
                Ok(Attempt::Expired) => return Err(self.expired(last)),
                Ok(Attempt::Waits { holder, remaining }) => {
                    self.announce_standby(holder, remaining);
                    (failures, last) = (0, None);
                    remaining.min(self.candidate.timing().retry_period.mul_f64(jitter()))
                }
                Err(error) => {
                    self.written = None;
                    let pause = self.backoff(failures, &error);
                    self.announce_failure(&error, pause);
                    failures += 1;
                    last = Some(error);
                    pause
                }
            };
            tokio::select! {
                () = released.cancelled() => {}
                () = tokio::time::sleep(pause.min(self.remaining(Moment::now()))) => {}
            }
        }
        self.release().await;
        Ok(())
    }

    async fn attempt(&mut self) -> Result<Attempt, AttemptError> {
        let found = match self.written.take() {
            Some(written) => Some(written),
            None => self.cluster.read(&self.lease).await?,
        };
        let record = found.as_ref().map(LeaderElectionRecord::from_lease).transpose()?;
        match self.candidate.decide(record.as_ref(), Moment::now()) {
            Decision::Wait { holder, remaining } => Ok(Attempt::Waits { holder, remaining }),
            Decision::Take(record) | Decision::Renew(record) => {
                let sent = Moment::now();
                if self.candidate.has_expired(sent) {
                    return Ok(Attempt::Expired);
                }
                self.written = Some(self.write(found, &record).await?);
                let claim = self.candidate.record_write(record, sent).clone();
                self.claims.send_replace(Some(claim));
                Ok(Attempt::Leads)
            }
        }
    }

    /// Writes `record` to the Lease if it still equals `found`.
    async fn write(
        &self,
        found: Option<Value>,
        record: &LeaderElectionRecord,
    ) -> Result<Value, RequestError> {
        match found {
            Some(mut lease) => {
                record.write_to(&mut lease);
                self.cluster.replace(&lease, names::LEADER_ELECTION).await
            }
            None => {
                let mut lease = json!({
                    "apiVersion": self.lease.api_version,
                    "kind": self.lease.kind,
                    "metadata": { "namespace": self.lease.namespace, "name": self.lease.name },
                });
                record.write_to(&mut lease);
                self.cluster.create(&lease, names::LEADER_ELECTION).await
            }
        }
    }

    /// Releases the Lease, so that the next leader does not have to wait.
    async fn release(&mut self) {
        self.claims.send_replace(None);
        if self.candidate.claim().is_none() {
            return;
        }
        let patience = self.candidate.timing().renew_deadline / 2;
        for _ in 0..RELEASE_ATTEMPTS {
            match timeout(patience, self.write_release()).await {
                Ok(Ok(())) => return,
                Ok(Err(AttemptError::Request(error))) if error.is_conflict() => {}
                Ok(Err(error)) => {
                    warn!(%error, "Cannot release the Lease; the next leader waits until it expires");
                    return;
                }
                Err(_) => {
                    warn!("Timed out releasing the Lease; the next leader waits until it expires");
                    return;
                }
            }
        }
    }

    async fn write_release(&mut self) -> Result<(), AttemptError> {
        let found = match self.written.take() {
            Some(written) => Some(written),
            None => self.cluster.read(&self.lease).await?,
        };
        let Some(lease) = found else { return Ok(()) };
        let record = LeaderElectionRecord::from_lease(&lease)?;
        if record.holder == self.candidate.identity() {
            self.write(Some(lease), &record.released(Moment::now())).await?;
            info!(lease = %self.lease, "Released the Lease");
        }
        Ok(())
    }

    fn expired(self, last: Option<AttemptError>) -> LeadershipLost {
        self.claims.send_replace(None);
        LeadershipLost::Expired {
            deadline: self.candidate.timing().renew_deadline,
            lease: self.lease,
            last,
        }
    }

    /// Returns the timeout of an attempt, which leaves time for another one.
    fn attempt_timeout(&self, now: Moment) -> Duration {
        let patience = self.candidate.timing().renew_deadline / 2;
        patience.min(self.remaining(now))
    }

    /// Returns the remaining time of the own claim; unlimited without one.
    fn remaining(&self, now: Moment) -> Duration {
        self.candidate.claim().map_or(Duration::MAX, |claim| {
            claim.expiry.since_boot.saturating_sub(now.since_boot)
        })
    }

    /// Returns a short delay after the first failure, at most the usual interval; or the delay that the API
    /// server requests.
    fn backoff(&self, failures: u32, error: &AttemptError) -> Duration {
        let usual = self.candidate.timing().retry_period;
        let pause = (usual / 8).saturating_mul(1 << failures.min(3)).mul_f64(jitter());
        match error {
            AttemptError::Request(error) => pause.max(error.retry_after().unwrap_or_default()),
            AttemptError::Read(_) | AttemptError::Slow => pause,
        }
    }

    fn announce_lead(&mut self, events: &Events) {
        let identity = self.candidate.identity();
        if self.announced.as_deref() == Some(identity) {
            return;
        }
        info!(identity, lease = %self.lease, "Leading");
        if let Some(lease) = &self.written {
            events.note(
                lease,
                "Lead",
                "LeaderElection",
                &format!("{identity} became leader"),
            );
        }
        self.announced = Some(identity.to_owned());
    }

    fn announce_standby(&mut self, holder: String, remaining: Duration) {
        if self.announced.as_ref() == Some(&holder) {
            return;
        }
        let until = Moment::now().after(remaining).wall;
        info!(
            identity = self.candidate.identity(),
            lease = %self.lease,
            "Standing by: {holder} is the leader until {until:.0}, or longer if it renews the Lease"
        );
        self.announced = Some(holder);
    }

    fn announce_failure(&self, error: &AttemptError, pause: Duration) {
        match error {
            // Another candidate was faster, or a client changed its labels.
            AttemptError::Request(error) if error.is_conflict() => {
                debug!(%error, "The Lease has changed since it was read");
            }
            _ => warn!(error = %chain(error), retry = ?pause, "Cannot read or write the Lease"),
        }
    }
}

/// Spreads the attempts of replicas; never exceeds the interval.
fn jitter() -> f64 {
    rand::rng().random_range(0.8..=1.0)
}
