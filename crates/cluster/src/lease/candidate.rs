//! The decision of a candidate, given the state of the Lease: acquire it, renew it, or wait.

use std::time::Duration;

use super::{LeaderElectionRecord, LeaderTerm, Moment};

/// Durations of leader election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderElectionConfig {
    /// How long other candidates wait after the last renewal that they have observed. In whole seconds, at
    /// least one.
    pub lease_duration: Duration,
    /// How long the leader tries to renew before it stops leading. Shorter than the lease.
    pub renew_deadline: Duration,
    /// The interval between attempts. Several fit into the deadline.
    pub retry_period: Duration,
}

/// A replica in the election, with what it has observed of the Lease.
#[derive(Clone, Debug)]
pub struct Candidate {
    identity: String,
    timing: LeaderElectionConfig,
    /// The last observed record, and when it was first observed.
    seen: Option<(LeaderElectionRecord, Moment)>,
    claim: Option<LeaderTerm>,
}

/// What to do with the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Write this record: the Lease has no holder, or its holder has not renewed it for its duration.
    Take(LeaderElectionRecord),
    /// Write this record to renew the own Lease.
    Renew(LeaderElectionRecord),
    /// Wait: another candidate holds the Lease.
    Wait {
        /// Identity of the holder.
        holder: String,
        /// The time until it expires, if it is not renewed.
        remaining: Duration,
    },
}

impl Candidate {
    /// Creates a candidate without observations. Identities must be unique.
    pub fn new(identity: String, timing: LeaderElectionConfig) -> Self {
        Self {
            identity,
            timing,
            seen: None,
            claim: None,
        }
    }

    /// Returns the identity that the candidate writes as the Lease's holder.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns the durations of the election.
    pub fn timing(&self) -> LeaderElectionConfig {
        self.timing
    }

    /// Returns its claim, which may have expired.
    pub fn claim(&self) -> Option<&LeaderTerm> {
        self.claim.as_ref()
    }

    /// Decides what to do with the Lease, which was just read: its record is `found`, or it does not exist.
    ///
    /// The holder's timestamps are ignored: its calendar may be wrong, or ours. What counts is how long we
    /// have observed the Lease unchanged, on the steady clock. That starts after the renewal, so an expiry is
    /// detected late, but never early.
    pub fn decide(&mut self, found: Option<&LeaderElectionRecord>, now: Moment) -> Decision {
        let duration = self.timing.lease_duration;
        let Some(found) = found else {
            self.seen = None;
            return Decision::Take(LeaderElectionRecord::acquired(
                None,
                &self.identity,
                duration,
                now,
            ));
        };
        let since = match &self.seen {
            Some((seen, since)) if seen == found => *since,
            _ => {
                self.seen = Some((found.clone(), now));
                now
            }
        };
        if found.holder == self.identity {
            return Decision::Renew(found.renewed(duration, now));
        }
        let until = since
            .since_boot
            .saturating_add(found.duration.unwrap_or(duration));
        if found.holder.is_empty() || until <= now.since_boot {
            return Decision::Take(LeaderElectionRecord::acquired(
                Some(found),
                &self.identity,
                duration,
                now,
            ));
        }
        Decision::Wait {
            holder: found.holder.clone(),
            remaining: until.saturating_sub(now.since_boot),
        }
    }

    /// Records that the API server has confirmed the write of `record`, which was sent at `sent`.
    pub fn record_write(&mut self, record: LeaderElectionRecord, sent: Moment) -> &LeaderTerm {
        self.seen = Some((record, sent));
        self.claim.insert(LeaderTerm {
            holder: self.identity.clone(),
            expiry: sent.after(self.timing.renew_deadline),
        })
    }

    /// Reports whether this candidate claims to lead, but the claim has expired.
    pub fn has_expired(&self, now: Moment) -> bool {
        self.claim
            .as_ref()
            .is_some_and(|claim| claim.expiry.has_passed(now))
    }
}
