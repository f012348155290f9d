//! What a flood came to.

use std::time::Duration;

use windlass_scenarios::load::Report;

use super::{arguments::FloodArguments, calls::Calls, repair_probe::ProbedRepairs};
use crate::{
    figures::{mebibytes, short},
    measurement::Measurement,
};

/// Memory and rotations, as far as they were looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct Looked {
    /// The operator's memory in bytes, as often as it was looked at.
    pub(super) memory: Vec<u64>,
    /// How long each CA rotation took.
    pub(super) rotations: Vec<Duration>,
}

/// What a flood came to.
pub(super) struct FloodOutcome {
    /// Requests through the webhooks of the sample.
    pub(super) load: Report,
    /// Repairs before the flood.
    pub(super) before: ProbedRepairs,
    /// Repairs during the flood.
    pub(super) during: ProbedRepairs,
    /// Requests that the guard is to deny.
    pub(super) guard: Calls,
    /// What the flood sent.
    pub(super) flood: Calls,
    /// What was looked at meanwhile.
    pub(super) looked: Looked,
    /// The operator's memory at the most, in bytes.
    pub(super) peak: u64,
}

impl FloodOutcome {
    /// The figures.
    pub(super) fn measurement(&self, arguments: &FloodArguments) -> Measurement {
        Measurement {
            tables: self.tables(),
            failures: self.load.first_failures(),
            missed: self.missed(),
            summary: format!(
                "{}, for {}: {} of memory at most; {} requests, {} failed; {} CA rotations; repairs p99 {}",
                arguments.kind,
                arguments.duration,
                mebibytes(self.peak),
                self.load.requests,
                self.load.failed,
                self.looked.rotations.len(),
                self.during.repairs.percentile(99),
            ),
        }
    }

    fn tables(&self) -> String {
        let mut table = Calls::headings();
        Calls::from(&self.load).add_to(&mut table, "requests to the sample");
        self.guard.add_to(&mut table, "requests to the guard");
        self.before
            .writes
            .add_to(&mut table, "overwrites before the flood");
        self.before.repairs.add_to(&mut table, "repairs before the flood");
        self.during.writes.add_to(&mut table, "overwrites");
        self.during.repairs.add_to(&mut table, "repairs");
        self.flood.add_to(&mut table, "the flood");
        let mut parts = vec![table.to_string()];
        let noted = [
            ("requests to the guard", &self.guard),
            ("overwrites", &self.during.writes),
            ("repairs", &self.during.repairs),
            ("the flood", &self.flood),
        ];
        let noted: String = noted.iter().map(|(title, calls)| calls.answers(title)).collect();
        parts.extend((!noted.is_empty()).then_some(noted));
        parts.push(self.looked.told(self.peak));
        parts.join("\n")
    }

    /// What should not have been. How fast it was is for those to judge who read it.
    fn missed(&self) -> Vec<String> {
        let failed = [
            ("requests to the sample", self.load.failed),
            ("requests that the guard is to deny", self.guard.failures()),
            ("overwrites", self.during.writes.failures()),
            ("repairs", self.during.repairs.failures()),
        ];
        let failed = failed.iter().filter(|(_, count)| *count > 0);
        let mut missed: Vec<_> = failed
            .map(|(what, count)| format!("{count} {what} failed"))
            .collect();
        if self.looked.rotations.is_empty() {
            missed.push("no CA rotation was done".to_owned());
        }
        if self.flood.sent() == self.flood.failures() {
            missed.push("there was no flood".to_owned());
        }
        missed
    }
}

impl Looked {
    fn told(&self, peak: u64) -> String {
        let mut sorted = self.rotations.clone();
        sorted.sort_unstable();
        let rotations = match (sorted.first(), sorted.last()) {
            (Some(least), Some(most)) => format!(
                "{} CA rotations: minimum {}, median {}, maximum {}.\n",
                sorted.len(),
                short(*least),
                short(sorted[sorted.len() / 2]),
                short(*most)
            ),
            _ => "No CA rotation.\n".to_owned(),
        };
        let memory = |bytes: Option<&u64>| mebibytes(bytes.copied().unwrap_or_default());
        format!(
            "{rotations}Memory of the operator: {} before the flood, {} at its end, {} at most.\n",
            memory(self.memory.first()),
            memory(self.memory.last()),
            mebibytes(peak)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> FloodOutcome {
        let mut flood = Calls::default();
        flood.succeeded(Duration::from_millis(1));
        FloodOutcome {
            load: Report::default(),
            before: ProbedRepairs::default(),
            during: ProbedRepairs::default(),
            guard: Calls::default(),
            flood,
            looked: Looked {
                memory: vec![1 << 20],
                rotations: vec![Duration::from_secs(9)],
            },
            peak: 2 << 20,
        }
    }

    #[test]
    fn a_call_that_failed_is_missed_and_a_slow_one_is_not() {
        let mut outcome = outcome();
        outcome.during.repairs.succeeded(Duration::from_secs(9));
        outcome.flood.failed("too large");
        assert_eq!(outcome.missed(), Vec::<String>::new());
        outcome.guard.failed("not denied");
        outcome.load.failed = 2;
        assert_eq!(
            outcome.missed(),
            [
                "2 requests to the sample failed",
                "1 requests that the guard is to deny failed"
            ]
        );
    }

    #[test]
    fn a_flood_without_a_rotation_or_that_never_came_is_missed() {
        let mut outcome = outcome();
        outcome.looked.rotations.clear();
        outcome.flood = Calls::default();
        assert_eq!(
            outcome.missed(),
            ["no CA rotation was done", "there was no flood"]
        );
    }
}
