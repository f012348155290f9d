//! The problems of an upgrade under load: all of them, not only the first.

use crate::{
    load::{Load, Report},
    scenarios::traffic::NEWEST,
};

/// The maximum number of failures that are listed for each step.
const MOST_LISTED: usize = 3;

/// The problems that were found.
#[derive(Debug, Default)]
pub(super) struct UpgradeOutcome {
    problems: Vec<String>,
}

impl UpgradeOutcome {
    /// Adds the result of a step, and the failed calls of `load` during the step.
    pub(super) fn record_step(&mut self, what: &str, way: anyhow::Result<()>, load: &Load) {
        if let Err(error) = way {
            self.record_problem(&format!("{what}: {error:#}"));
        }
        self.record_requests(&format!("calls during {what}"), &load.lap());
    }

    /// Adds a problem.
    pub(super) fn record_problem(&mut self, problem: &str) {
        self.problems.push(problem.to_owned());
    }

    /// Adds the failed requests of a report.
    pub(super) fn record_requests(&mut self, what: &str, report: &Report) {
        let requests = usize::try_from(report.requests).unwrap_or(usize::MAX);
        let failures: Vec<String> = report
            .failures
            .iter()
            .map(|failure| failure.text.clone())
            .collect();
        self.record_failures(what, requests, &failures);
    }

    /// Adds a problem unless the newest version was served or not as in `states`.
    pub(super) fn record_served(&mut self, report: &Report, states: &[bool]) {
        if let Err(error) = report.check_served(NEWEST, states) {
            self.record_problem(&format!("{error:#}"));
        }
    }

    /// Adds the first failures of `all` requests or checks.
    pub(super) fn record_failures(&mut self, what: &str, all: usize, failures: &[String]) {
        if all == 0 {
            self.record_problem(&format!("no {what} were counted"));
        }
        if !failures.is_empty() {
            let told = failures[..failures.len().min(MOST_LISTED)].join("\n    ");
            self.record_problem(&format!("{} of {all} {what} failed:\n    {told}", failures.len()));
        }
    }

    /// Returns an error with all problems, if there are any.
    pub(super) fn check(self) -> anyhow::Result<()> {
        anyhow::ensure!(self.problems.is_empty(), "{}", self.problems.join("\n  "));
        Ok(())
    }
}
