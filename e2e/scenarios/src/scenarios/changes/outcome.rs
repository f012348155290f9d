//! What an upgrade under load came to: everything that went wrong, not the first thing only.

use crate::load::{Load, Report};

/// How many failures of a kind are told.
const TOLD: usize = 3;

/// What went wrong.
#[derive(Debug, Default)]
pub(super) struct UpgradeOutcome {
    problems: Vec<String>,
}

// === impl UpgradeOutcome ===

impl UpgradeOutcome {
    /// How something went, and the calls meanwhile.
    pub(super) fn went(&mut self, what: &str, way: anyhow::Result<()>, load: &Load) {
        if let Err(error) = way {
            self.wrong(&format!("{what}: {error:#}"));
        }
        self.sent(&format!("calls during {what}"), &load.lap());
    }

    /// Something else that is wrong.
    pub(super) fn wrong(&mut self, problem: &str) {
        self.problems.push(problem.to_owned());
    }

    /// Calls, none of which may have failed.
    pub(super) fn sent(&mut self, what: &str, report: &Report) {
        let requests = usize::try_from(report.requests).unwrap_or(usize::MAX);
        let failures: Vec<String> = report
            .failures
            .iter()
            .map(|failure| failure.text.clone())
            .collect();
        self.listed(what, requests, &failures);
    }

    /// The same, with words for each failure.
    pub(super) fn listed(&mut self, what: &str, all: usize, failures: &[String]) {
        if all == 0 {
            self.wrong(&format!("there were no {what}"));
        }
        if !failures.is_empty() {
            let told = failures[..failures.len().min(TOLD)].join("\n    ");
            self.wrong(&format!("{} of {all} {what} failed:\n    {told}", failures.len()));
        }
    }

    /// An error that lists everything.
    pub(super) fn check(self) -> anyhow::Result<()> {
        anyhow::ensure!(self.problems.is_empty(), "{}", self.problems.join("\n  "));
        Ok(())
    }
}
