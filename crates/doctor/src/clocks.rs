//! Clocks of this machine, the leader and the nodes.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::{
    check::DoctorCheck,
    finding::{DoctorFinding, DoctorSeverity},
};

/// By how much clocks may differ. The Date header has a resolution of one second, and responses may be slow.
pub(crate) const SKEW: SignedDuration = SignedDuration::from_secs(10);

/// For how long a Ready node may not renew its Lease: the node controller waits 40 s.
const SILENCE: SignedDuration = SignedDuration::from_secs(90);

/// Formats the absolute value of a duration in seconds.
pub(crate) fn seconds(duration: SignedDuration) -> String {
    format!("{} s", duration.abs().as_secs())
}

/// Judges by how much this machine's clock is ahead of the API server's; `None` if no response contained a
/// time.
pub fn api_server_clock(ahead: Option<SignedDuration>) -> DoctorFinding {
    let (check, subject) = (DoctorCheck::ClockSkew, "API server");
    let Some(ahead) = ahead else {
        let message = "not checked: its clock; no response had a Date header, or all took longer than 2 s";
        return DoctorCheck::NotLookedAt.warning(subject, message);
    };
    if ahead.abs() <= SKEW {
        return check.info(subject, "its clock agrees with this machine");
    }
    let side = if ahead.is_negative() { "behind" } else { "ahead of" };
    let message = format!(
        "the clock of this machine is {} {side} the clock of the API server, which decides whether certificates are valid: correct the wrong one",
        seconds(ahead)
    );
    check.warning(subject, message)
}

/// Judges the clocks of nodes by the renewal of their Leases, which only nodes in `ready` must renew. `now`
/// is the API server's time.
pub fn node_clocks(
    leases: &[(String, Timestamp)],
    ready: &BTreeSet<String>,
    now: Timestamp,
) -> Vec<DoctorFinding> {
    let check = DoctorCheck::NodeClock;
    let mut findings: Vec<_> = leases
        .iter()
        .filter_map(|(node, renewed)| {
            let ahead = renewed.duration_since(now);
            let message = if ahead > SKEW {
                format!(
                    "renewed its Lease {} in the future: correct its clock; pods on it misjudge whether certificates are valid",
                    seconds(ahead)
                )
            } else if -ahead > SILENCE && ready.contains(node) {
                format!(
                    "is Ready, but renewed its Lease {} ago: its clock is behind, or its kubelet has just stopped",
                    seconds(ahead)
                )
            } else {
                return None;
            };
            Some(check.finding(DoctorSeverity::Warning, format!("Node {node}"), message))
        })
        .collect();
    if findings.is_empty() && !leases.is_empty() {
        let message = format!("the clocks of {} agree with that of the API server", leases.len());
        findings.push(check.info("Nodes", message));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_clock_differences_are_accepted() {
        for (ahead, expected) in [
            (Some(0), DoctorSeverity::Info),
            (Some(10), DoctorSeverity::Info),
            (Some(11), DoctorSeverity::Warning),
            (Some(-4000), DoctorSeverity::Warning),
            (None, DoctorSeverity::Warning),
        ] {
            let finding = api_server_clock(ahead.map(SignedDuration::from_secs));
            assert_eq!(finding.severity, expected, "{finding:?}");
        }
    }

    #[test]
    fn only_ready_nodes_must_renew_their_leases() {
        let now: Timestamp = "2026-11-27T03:00:00Z".parse().unwrap();
        let lease = |node: &str, seconds_ago| (node.to_owned(), now - SignedDuration::from_secs(seconds_ago));
        let leases = [
            lease("fine", 5),
            lease("future", -60),
            lease("late", 600),
            lease("gone", 600),
        ];
        let ready = ["fine", "future", "late"].map(str::to_owned).into();
        let found: Vec<_> = node_clocks(&leases, &ready, now)
            .into_iter()
            .map(|finding| finding.subject)
            .collect();
        assert_eq!(found, ["Node future", "Node late"]);
        let fine = node_clocks(&leases[..1], &ready, now);
        assert_eq!(fine[0].severity, DoctorSeverity::Info);
        assert!(node_clocks(&[], &ready, now).is_empty());
    }
}
