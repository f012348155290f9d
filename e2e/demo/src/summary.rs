//! What the demo says at its end.

use windlass_scenarios::load::Report;

/// The last lines of the demo: what was sent, and how it went.
pub fn summary(report: &Report) -> String {
    let kinds: Vec<String> = report
        .by_kind
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    let mut lines = vec![format!(
        "{}; p99 {:.0?}; longest gap between two responses {:.0?}; {} pauses of the API server itself after a CRD \
         write, {:.0?} at most",
        kinds.join(", "),
        report.latencies.percentile(99).unwrap_or_default(),
        report.longest_gap,
        report.reinitializing,
        report.longest_reinitializing,
    )];
    lines.extend(report.told().iter().map(|failure| format!("failed: {failure}")));
    lines.push(format!("{} requests, {} failed", report.requests, report.failed));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_scenarios::load::Failure;

    #[test]
    fn the_last_line_counts() {
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
