//! The content of a Lease.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::LeaseSpec;
use serde_json::{Value, json};
use thiserror::Error;

use super::Moment;

/// The content of a Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaderElectionRecord {
    /// The holder; empty if there is none.
    pub holder: String,
    /// How long other candidates wait after a renewal before they acquire the Lease.
    pub duration: Option<Duration>,
    /// When the holder acquired it, by the holder's calendar.
    pub acquired: Option<Timestamp>,
    /// When the holder last renewed it, by the holder's calendar. Only used to distinguish renewals.
    pub renewed: Option<Timestamp>,
    /// The number of changes of the holder.
    pub transitions: i32,
}

/// Why a Lease is invalid.
#[derive(Debug, Error)]
#[error("the Lease does not match its schema")]
pub struct ReadLeaseError(#[from] serde_json::Error);

impl LeaderElectionRecord {
    /// Reads a Lease.
    ///
    /// # Errors
    ///
    /// When a field does not have the type of the API.
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

    /// Writes the record to a Lease; other fields stay.
    pub fn write_to(&self, lease: &mut Value) {
        let time = |time: Option<Timestamp>| time.map(|time| format!("{time:.6}"));
        let spec = &mut lease["spec"];
        spec["holderIdentity"] = json!(self.holder);
        spec["leaseDurationSeconds"] = json!(self.duration.map(|duration| duration.as_secs()));
        spec["acquireTime"] = json!(time(self.acquired));
        spec["renewTime"] = json!(time(self.renewed));
        spec["leaseTransitions"] = json!(self.transitions);
    }

    /// Returns the record after `holder` acquires a Lease with the record `before`.
    pub(super) fn acquired(before: Option<&Self>, holder: &str, duration: Duration, now: Moment) -> Self {
        let now = microseconds(now.wall);
        Self {
            holder: holder.to_owned(),
            duration: Some(duration),
            acquired: Some(now),
            renewed: Some(now),
            transitions: before.map_or(0, |before| before.transitions.saturating_add(1)),
        }
    }

    /// Returns the record after a renewal.
    pub(super) fn renewed(&self, duration: Duration, now: Moment) -> Self {
        Self {
            duration: Some(duration),
            renewed: Some(microseconds(now.wall)),
            ..self.clone()
        }
    }

    /// Returns the record after its holder releases the Lease. As in client-go, the timestamps are set to
    /// now, and the duration to one second.
    pub(super) fn released(&self, now: Moment) -> Self {
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

/// Truncates to the precision of the API.
fn microseconds(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}
