//! What was sent, and what came of it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use windlass_scenarios::load::{Latencies, Report};

use crate::{figures::short, table::FiguresTable};

/// What was sent, and what came of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    sent: u64,
    failed: u64,
    latencies: Latencies,
    /// How often each thing was said to them.
    answers: BTreeMap<String, u64>,
}

/// Calls that several count.
pub(super) type SharedCalls = Arc<Mutex<Calls>>;

/// How many different answers are told apart.
const ANSWERS: usize = 10;

/// How many characters of an answer are told.
const TOLD: usize = 160;

impl Calls {
    /// Counts one that was done as it should be.
    pub(super) fn succeeded(&mut self, latency: Duration) {
        self.sent += 1;
        self.latencies.record(latency);
    }

    /// Counts one that has failed.
    pub(super) fn failed(&mut self, why: &str) {
        self.sent += 1;
        self.failed += 1;
        self.note(why);
    }

    /// Counts one of which it does not matter how it ended.
    pub(super) fn answered(&mut self, answer: &str, latency: Duration) {
        self.succeeded(latency);
        self.note(answer);
    }

    fn note(&mut self, answer: &str) {
        let told: String = answer.chars().take(TOLD).collect();
        if self.answers.len() < ANSWERS || self.answers.contains_key(&told) {
            *self.answers.entry(told).or_default() += 1;
        }
    }

    /// How many were sent.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// How many have failed.
    pub(super) fn failures(&self) -> u64 {
        self.failed
    }

    /// How long `percent` of 100 took at the most, in words.
    pub(super) fn percentile(&self, percent: u64) -> String {
        self.latencies.percentile(percent).map(short).unwrap_or_default()
    }

    /// A line for each answer that was noted.
    pub(super) fn answers(&self, title: &str) -> String {
        let lines = self.answers.iter();
        lines
            .map(|(answer, count)| format!("{title}: {count} times {answer}\n"))
            .collect()
    }

    /// Adds a row to a table of [`Calls::headings`].
    pub(super) fn add_to(&self, table: &mut FiguresTable, title: &str) {
        table.row([
            title.to_owned(),
            self.sent.to_string(),
            self.failed.to_string(),
            self.percentile(50),
            self.percentile(99),
            self.percentile(100),
        ]);
    }

    /// A table without rows.
    pub(super) fn headings() -> FiguresTable {
        FiguresTable::new(["", "sent", "failed", "p50", "p99", "longest"])
    }
}

impl From<&Report> for Calls {
    fn from(report: &Report) -> Self {
        Self {
            sent: report.requests,
            failed: report.failed,
            latencies: report.latencies.clone(),
            answers: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_different_answers_take_no_more_room() {
        let mut calls = Calls::default();
        for number in 0..100 {
            calls.failed(&format!("{number}{}", "x".repeat(1000)));
        }
        calls.failed(&format!("0{}", "x".repeat(1000)));
        assert_eq!((calls.sent(), calls.failures()), (101, 101));
        let told = calls.answers("flood");
        assert_eq!(told.lines().count(), ANSWERS);
        assert!(told.starts_with("flood: 2 times 0x"), "{told}");
    }
}
