//! What a Lease says.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::LeaseSpec;
use serde_json::{Value, json};
use thiserror::Error;

use super::Moment;

/// What a Lease says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaderElectionRecord {
    /// Who holds it; empty when nobody does.
    pub holder: String,
    /// How long after a renewal others wait before they take it.
    pub duration: Option<Duration>,
    /// When the holder took it, by the holder's calendar.
    pub acquired: Option<Timestamp>,
    /// When the holder renewed it last, by the holder's calendar. It only tells one renewal from another.
    pub renewed: Option<Timestamp>,
    /// How often it went from one holder to another.
    pub transitions: i32,
}

/// Why a Lease makes no sense.
#[derive(Debug, Error)]
#[error("the Lease does not match its schema")]
pub struct ReadLeaseError(#[from] serde_json::Error);

// === impl LeaderElectionRecord ===

impl LeaderElectionRecord {
    /// Reads a Lease.
    ///
    /// # Errors
    ///
    /// When a field is of another type than the API says.
    pub fn from_lease(lease: &Value) -> Result<Self, ReadLeaseError> {
        let spec = lease.get("spec").cloned().unwrap_or_else(|| json!({}));
        let spec: LeaseSpec = serde_json::from_value(spec)?;
        let seconds = spec.lease_duration_seconds;
        Ok(Self {
            holder: spec.holder_identity.unwrap_or_default(),
            duration: seconds.map(|seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or_default())),
            acquired: spec.acquire_time.map(|time| time.0),
            renewed: spec.renew_time.map(|time| time.0),
            transitions: spec.lease_transitions.unwrap_or_default(),
        })
    }

    /// Writes this into a Lease; what else is there stays.
    pub fn write_to(&self, lease: &mut Value) {
        let time = |time: Option<Timestamp>| time.map(|time| format!("{time:.6}"));
        let spec = &mut lease["spec"];
        spec["holderIdentity"] = json!(self.holder);
        spec["leaseDurationSeconds"] = json!(self.duration.map(|duration| duration.as_secs()));
        spec["acquireTime"] = json!(time(self.acquired));
        spec["renewTime"] = json!(time(self.renewed));
        spec["leaseTransitions"] = json!(self.transitions);
    }

    /// `holder` takes a Lease that says `before`.
    pub(super) fn taken(before: Option<&Self>, holder: &str, duration: Duration, now: Moment) -> Self {
        let now = microseconds(now.wall);
        Self {
            holder: holder.to_owned(),
            duration: Some(duration),
            acquired: Some(now),
            renewed: Some(now),
            transitions: before.map_or(0, |before| before.transitions.saturating_add(1)),
        }
    }

    /// Its holder renews it.
    pub(super) fn renewed(&self, duration: Duration, now: Moment) -> Self {
        Self {
            duration: Some(duration),
            renewed: Some(microseconds(now.wall)),
            ..self.clone()
        }
    }

    /// Its holder gives it up. As client-go does it: the times say when, and nobody need wait for longer than a second.
    pub(super) fn vacated(&self, now: Moment) -> Self {
        let now = microseconds(now.wall);
        Self {
            holder: String::new(),
            duration: Some(Duration::from_secs(1)),
            acquired: Some(now),
            renewed: Some(now),
            transitions: self.transitions,
        }
    }
}

/// As exact as the API gives it back.
fn microseconds(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}
