//! The summary at the end of the demo.

use windlass_scenarios::load::Report;

/// The kinds of requests in the order in which an object's life has them, with their names and what they show.
const KINDS: [(&str, &str, &str); 6] = [
    ("create", "creates", "accepted by the admission webhooks"),
    ("deny", "invalid creates", "denied by the validating webhook"),
    (
        "get",
        "reads",
        "in every served version, converted by the webhook",
    ),
    ("patch", "updates", "accepted by the admission webhooks"),
    ("list", "lists", "of converted objects"),
    ("delete", "deletes", "of the created objects"),
];

/// Summarizes the requests and their results. The last line has the totals.
pub fn summary(report: &Report) -> String {
    let mut lines = vec![String::new(), "Successful requests by kind:".to_owned()];
    for (kind, name, meaning) in KINDS {
        if let Some(count) = report.by_kind.get(kind) {
            lines.push(format!("{count:>8} {name:<15}  {meaning}"));
        }
    }
    lines.push(format!(
        "Latency: p99 {:.0?}, longest time between two responses {:.0?}",
        report.latencies.percentile(99).unwrap_or_default(),
        report.longest_gap,
    ));
    if report.reinitializing > 0 {
        lines.push(format!(
            "Retried, as client-go does: {} responses \"429 storage is (re)initializing\" after CRD writes, for {:.0?} at most",
            report.reinitializing, report.longest_reinitializing,
        ));
    }
    let failures = report.first_failures();
    let hidden = report.failures.len() - failures.len();
    lines.extend(failures.iter().map(|failure| format!("failed: {failure}")));
    if hidden > 0 {
        lines.push(format!("failed: {hidden} more requests"));
    }
    lines.push(format!("{} requests, {} failed", report.requests, report.failed));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_scenarios::load::Failure;

    #[test]
    fn every_counted_kind_has_a_line() {
        let report = Report {
            by_kind: [("get", 12), ("deny", 3)].into(),
            ..Report::default()
        };
        let lines = summary(&report);
        assert!(lines.contains("      12 reads            in every"), "{lines}");
        assert!(lines.contains("       3 invalid creates  denied"), "{lines}");
    }

    #[test]
    fn the_last_line_has_the_totals() {
        let now = std::time::Instant::now();
        let failure = Failure {
            sent: now,
            answered: now,
            text: "why".to_owned(),
        };
        let report = Report {
            requests: 7,
            failed: 1,
            failures: vec![failure],
            ..Report::default()
        };
        assert_eq!(summary(&report).lines().last(), Some("7 requests, 1 failed"));
    }
}
