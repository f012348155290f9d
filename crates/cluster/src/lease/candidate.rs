//! The decision, given what the Lease says: take it, renew it, or wait.

use std::time::Duration;

use super::{LeaderElectionRecord, LeaderTerm, Moment};

/// How long things take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderElectionConfig {
    /// How long others wait after the last renewal that they have seen. In whole seconds, at least one.
    pub lease_duration: Duration,
    /// How long the holder tries to renew before it stops to lead. Shorter than the lease.
    pub renew_deadline: Duration,
    /// How long between two tries. Several fit into the deadline.
    pub retry_period: Duration,
}

/// One that leads, or would.
#[derive(Clone, Debug)]
pub struct Candidate {
    identity: String,
    timing: LeaderElectionConfig,
    /// What the Lease said last, and when it was first seen to say so.
    seen: Option<(LeaderElectionRecord, Moment)>,
    claim: Option<LeaderTerm>,
}

/// What to do about the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nobody holds it, or its holder has not renewed it for as long as it said: write this.
    Take(LeaderElectionRecord),
    /// It is ours: write this.
    Renew(LeaderElectionRecord),
    /// Somebody else holds it.
    Wait {
        /// Who.
        holder: String,
        /// For how long, if it is not renewed.
        remaining: Duration,
    },
}

// === impl Candidate ===

impl Candidate {
    /// One that has seen nothing yet. No two may have the same identity.
    pub fn new(identity: String, timing: LeaderElectionConfig) -> Self {
        Self {
            identity,
            timing,
            seen: None,
            claim: None,
        }
    }

    /// Who it is.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// How long things take.
    pub fn timing(&self) -> LeaderElectionConfig {
        self.timing
    }

    /// What it claims, be it current or not.
    pub fn claim(&self) -> Option<&LeaderTerm> {
        self.claim.as_ref()
    }

    /// What to do about the Lease, which has just been read: it says `found`, or is not there.
    ///
    /// A holder's own times are not believed: its calendar may be wrong, or ours. What counts is for how long we have
    /// seen the Lease unchanged, on the steady clock. That begins after the renewal, so it can only end too late.
    pub fn consider(&mut self, found: Option<&LeaderElectionRecord>, now: Moment) -> Decision {
        let duration = self.timing.lease_duration;
        let Some(found) = found else {
            self.seen = None;
            return Decision::Take(LeaderElectionRecord::taken(None, &self.identity, duration, now));
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
            return Decision::Take(LeaderElectionRecord::taken(
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

    /// The API server has confirmed our write of `record`, which was sent at `sent`.
    pub fn won(&mut self, record: LeaderElectionRecord, sent: Moment) -> &LeaderTerm {
        self.seen = Some((record, sent));
        self.claim.insert(LeaderTerm {
            holder: self.identity.clone(),
            expiry: sent.after(self.timing.renew_deadline),
        })
    }

    /// Whether it claims to lead, and its claim has ended.
    pub fn has_expired(&self, now: Moment) -> bool {
        self.claim
            .as_ref()
            .is_some_and(|claim| claim.expiry.has_passed(now))
    }
}
