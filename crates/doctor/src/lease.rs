//! The leader of each part of Windlass, from its Lease.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use windlass_object::{ObjectKey, age::age};

use crate::{
    check::DoctorCheck,
    clocks::{SKEW, seconds},
    finding::DoctorFinding,
};

/// The contents of a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseFacts {
    /// Key of the Lease.
    pub key: ObjectKey,
    /// The holder; empty if there is none.
    pub holder: String,
    /// How long a renewal is valid.
    pub duration: Option<Duration>,
    /// When it was renewed, by the holder's clock.
    pub renewed: Option<Timestamp>,
}

/// How long a leader may take to renew, at least, because it may be restarting.
const SILENCE: SignedDuration = SignedDuration::from_mins(1);

/// Judges the Lease of a part of Windlass; `now` is the API server's time.
pub fn leader(lease: &LeaseFacts, now: Timestamp) -> DoctorFinding {
    let LeaseFacts {
        key,
        holder,
        duration,
        renewed,
    } = lease;
    let check = DoctorCheck::NobodyLeads;
    let Some(renewed) = renewed.filter(|_| !holder.is_empty()) else {
        let message = "has no leader: check the pods of Windlass and their logs";
        return check.warning(key, message);
    };
    let ahead = renewed.duration_since(now);
    if ahead > SKEW {
        let message = format!(
            "was renewed by {holder} {} in the future: correct the clock of its node",
            seconds(ahead)
        );
        return DoctorCheck::ClockSkew.warning(key, message);
    }
    let lasts = duration.and_then(|lasts| SignedDuration::try_from(lasts).ok());
    if -ahead > lasts.unwrap_or_default().max(SILENCE) {
        let message = format!(
            "{holder} has not renewed it for {}: renewals and installs have stopped; check the pods of Windlass and their logs",
            age(renewed, now)
        );
        return check.error(key, message);
    }
    check.info(key, format!("{holder} leads"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::DoctorSeverity::{Error, Info, Warning};

    #[test]
    fn a_leader_renews_its_lease_in_time() {
        let now: Timestamp = "2026-11-27T03:00:00Z".parse().unwrap();
        for (holder, seconds_ago, lasts, expected) in [
            ("a", 2, 15, (Info, "NobodyLeads")),
            ("a", 59, 15, (Info, "NobodyLeads")),
            ("a", 61, 15, (Error, "NobodyLeads")),
            ("a", 61, 90, (Info, "NobodyLeads")),
            ("", 2, 1, (Warning, "NobodyLeads")),
            ("a", -9, 15, (Info, "NobodyLeads")),
            ("a", -11, 15, (Warning, "ClockSkew")),
        ] {
            let finding = leader(
                &LeaseFacts {
                    key: ObjectKey::from_object(&serde_json::json!({
                        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"namespace": "n", "name": "windlass"},
                    }))
                    .unwrap(),
                    holder: holder.to_owned(),
                    duration: Some(Duration::from_secs(lasts)),
                    renewed: Some(now - SignedDuration::from_secs(seconds_ago)),
                },
                now,
            );
            assert_eq!((finding.severity, &*finding.reason), expected, "{finding:?}");
        }
    }
}
