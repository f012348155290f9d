//! Who leads, by their Lease.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use windlass_object::{ObjectKey, age::age};

use crate::{
    check::DoctorCheck,
    clocks::{SKEW, seconds},
    finding::DoctorFinding,
};

/// What a Lease says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseFacts {
    /// The Lease.
    pub key: ObjectKey,
    /// Who holds it; empty when nobody does.
    pub holder: String,
    /// For how long after a renewal.
    pub duration: Option<Duration>,
    /// When it was renewed, by the holder's clock.
    pub renewed: Option<Timestamp>,
}

/// How long a leader may be silent, at least: it may be restarted.
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
        let message = "nobody leads: look whether its pods run, and at their log";
        return check.warning(key, message);
    };
    let ahead = renewed.duration_since(now);
    if ahead > SKEW {
        let message = format!(
            "was renewed by {holder} {} in the future: set the clock of the node that it runs on",
            seconds(ahead)
        );
        return DoctorCheck::ClockSkew.warning(key, message);
    }
    let lasts = duration.and_then(|lasts| SignedDuration::try_from(lasts).ok());
    if -ahead > lasts.unwrap_or_default().max(SILENCE) {
        let message = format!(
            "{holder} has not renewed it for {}: nobody renews certificates or installs; look at the pods of Windlass and their log",
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
