//! What a run has measured, and how it is printed.

use std::{collections::BTreeMap, fmt, time::Duration};

use windlass_scenarios::{audit::Right, load::Report};

use super::{
    table::FiguresTable,
    targets::{TargetsSeen, Writes},
};

/// What a run has measured.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    /// The parts of the run, in order.
    pub(super) laps: Vec<Lap>,
    /// How long each CA rotation took.
    pub(super) rotations: Vec<Duration>,
    /// How often each target was written over all CA rotations.
    pub(super) writes: BTreeMap<String, Writes>,
    /// The operator's requests over all CA rotations.
    pub(super) requests: BTreeMap<Right, u64>,
    /// The operator's memory in bytes, as often as it was looked at.
    pub(super) memory: Vec<u64>,
    /// What should not have been.
    pub(super) missed: Vec<String>,
}

/// A part of a run.
#[derive(Clone, Debug)]
pub(super) struct Lap {
    pub(super) title: String,
    pub(super) kind: LapKind,
    pub(super) report: Report,
}

/// What went on in a part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LapKind {
    /// Nothing but requests.
    Quiet,
    /// Rotations.
    Rotations,
    /// Nothing that is compared: connections are made, or what was begun is ended.
    Other,
}

impl Figures {
    /// Notes what one CA rotation wrote: each target's bundle once, and nothing else but, on a CRD, its managedFields.
    pub(super) fn note_rotation(&mut self, number: u32, before: &TargetsSeen, after: &TargetsSeen) {
        for (path, seen) in after {
            let writes = before
                .get(path)
                .map(|before| seen.writes_since(before))
                .unwrap_or_default();
            let releases = u64::from(seen.title.starts_with("CustomResourceDefinition"));
            if writes.changes != 1 || writes.metadata_only > releases {
                self.missed.push(format!(
                    "CA rotation {number} changed {} {} times, and only its metadata {} times",
                    seen.title, writes.changes, writes.metadata_only
                ));
            }
            let sum = self.writes.entry(seen.title.clone()).or_default();
            sum.changes += writes.changes;
            sum.metadata_only += writes.metadata_only;
        }
    }

    /// Notes what the renewals of the serving certificate wrote: nothing.
    pub(super) fn note_renewals(&mut self, before: &TargetsSeen, after: &TargetsSeen) {
        for (path, seen) in after {
            let writes = before
                .get(path)
                .map(|before| seen.writes_since(before))
                .unwrap_or_default();
            if writes != Writes::default() {
                self.missed
                    .push(format!("renewing the serving certificate wrote {}", seen.title));
            }
        }
    }

    /// How much longer 99 of 100 requests took at the most than while nothing happened.
    fn added(&self, lap: &Lap) -> Option<String> {
        let p99 = |lap: &Lap| lap.report.latencies.percentile(99);
        let quiet = self
            .laps
            .iter()
            .find(|lap| lap.kind == LapKind::Quiet)
            .and_then(p99)?;
        let p99 = p99(lap).filter(|_| lap.kind == LapKind::Rotations)?;
        Some(match p99.checked_sub(quiet) {
            Some(added) => format!("+{}", short(added)),
            None => format!("-{}", short(quiet - p99)),
        })
    }

    fn traffic(&self, total: &Report) -> FiguresTable {
        let mut table = FiguresTable::new([
            "",
            "requests",
            "failed",
            "p50",
            "p99",
            "added p99",
            "longest gap",
            "429s",
            "longest 429",
        ]);
        let whole = Lap {
            title: "all".to_owned(),
            kind: LapKind::Other,
            report: total.clone(),
        };
        for lap in self.laps.iter().chain([&whole]) {
            let report = &lap.report;
            let percentile = |percent| {
                report
                    .latencies
                    .percentile(percent)
                    .map(short)
                    .unwrap_or_default()
            };
            table.row([
                lap.title.clone(),
                report.requests.to_string(),
                report.failed.to_string(),
                percentile(50),
                percentile(99),
                self.added(lap).unwrap_or_default(),
                short(report.longest_gap),
                report.reinitializing.to_string(),
                match report.reinitializing {
                    0 => String::new(),
                    _ => short(report.longest_reinitializing),
                },
            ]);
        }
        table
    }

    fn targets(&self) -> FiguresTable {
        let mut table = FiguresTable::new(["target", "CA rotations", "changes", "metadata only"]);
        for (title, writes) in &self.writes {
            table.row([
                title.clone(),
                self.rotations.len().to_string(),
                writes.changes.to_string(),
                writes.metadata_only.to_string(),
            ]);
        }
        table
    }

    /// The tables.
    pub(super) fn tables(&self, total: &Report) -> String {
        let mut parts = vec![self.traffic(total).to_string()];
        if !self.rotations.is_empty() {
            parts.push(self.targets().to_string());
            parts.push(requests(&self.requests, "a CA rotation", self.rotations.len()).to_string());
            let mut sorted = self.rotations.clone();
            sorted.sort_unstable();
            parts.push(format!(
                "Time of a CA rotation: minimum {}, median {}, maximum {}.\n",
                short(sorted[0]),
                short(sorted[sorted.len() / 2]),
                short(sorted[sorted.len() - 1]),
            ));
        }
        if let (Some(first), Some(last), Some(most)) =
            (self.memory.first(), self.memory.last(), self.memory.iter().max())
        {
            parts.push(format!(
                "Memory of the operator: {} at the start, {} at the end, {} at most.\n",
                mebibytes(*first),
                mebibytes(*last),
                mebibytes(*most)
            ));
        }
        let kinds: Vec<_> = total
            .by_kind
            .iter()
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        parts.push(format!("Requests: {}.\n", kinds.join(", ")));
        parts.join("\n")
    }
}

/// The operator's requests by what they ask for, and how many that makes for each of so many.
pub(super) fn requests(requests: &BTreeMap<Right, u64>, each: &str, of: usize) -> FiguresTable {
    let share = |count: u64| format!("{:.2}", Average { count, of });
    let mut table = FiguresTable::new(["operator requests", "all", each]);
    let mut sorted: Vec<_> = requests.iter().collect();
    sorted.sort_by_key(|(right, count)| (std::cmp::Reverse(**count), *right));
    for (right, count) in sorted {
        table.row([right.to_string(), count.to_string(), share(*count)]);
    }
    let sum: u64 = requests.values().sum();
    table.row(["all".to_owned(), sum.to_string(), share(sum)]);
    table
}

/// How many requests of each sort came since `before`.
pub(super) fn since<K: Ord>(before: &BTreeMap<K, u64>, after: BTreeMap<K, u64>) -> BTreeMap<K, u64> {
    let more = after.into_iter().map(|(sort, count)| {
        let before = before.get(&sort).copied().unwrap_or_default();
        (sort, count - before)
    });
    more.filter(|(_, count)| *count > 0).collect()
}

struct Average {
    count: u64,
    of: usize,
}

impl fmt::Display for Average {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = u64::try_from(self.of).unwrap_or(u64::MAX).max(1);
        let hundredths = (self.count * 100 + of / 2) / of;
        write!(f, "{}.{:02}", hundredths / 100, hundredths % 100)
    }
}

/// The one in the middle; of an even number, the longer of the two.
pub(super) fn median(times: impl Iterator<Item = Duration>) -> Duration {
    let mut times: Vec<_> = times.collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// A duration with as many digits as matter.
pub(super) fn short(duration: Duration) -> String {
    match duration.as_millis() {
        0..100 => format!("{:.1} ms", duration.as_secs_f64() * 1000.0),
        100..1000 => format!("{} ms", duration.as_millis()),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}

pub(super) fn mebibytes(bytes: u64) -> String {
    let tenths = bytes * 10 / (1 << 20);
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::Seen;

    const CRD: &str = "CustomResourceDefinition widgets";
    const WEBHOOKS: &str = "MutatingWebhookConfiguration widgets";

    fn missed(title: &str, changes: i64, metadata_only: u64) -> Vec<String> {
        let snapshot = |generation: i64, versions: u64| {
            TargetsSeen::from([("path".to_owned(), Seen::sample(title, versions, generation))])
        };
        let mut figures = Figures::default();
        let versions = 5 + changes.unsigned_abs() + metadata_only;
        figures.note_rotation(7, &snapshot(3, 5), &snapshot(3 + changes, versions));
        figures.missed
    }

    #[test]
    fn a_rotation_changes_each_target_once() {
        assert_eq!(missed(CRD, 1, 1), Vec::<String>::new());
        assert_eq!(missed(WEBHOOKS, 1, 0), Vec::<String>::new());
        for (title, changes, metadata_only) in [(CRD, 2, 1), (CRD, 0, 0), (CRD, 1, 2), (WEBHOOKS, 1, 1)] {
            assert_eq!(
                missed(title, changes, metadata_only),
                [format!(
                    "CA rotation 7 changed {title} {changes} times, and only its metadata {metadata_only} times"
                )]
            );
        }
    }

    #[test]
    fn what_is_added_is_the_difference_to_when_nothing_happened() {
        let lap = |kind, millis| {
            let mut report = Report::default();
            report.latencies.record(Duration::from_millis(millis));
            Lap {
                title: String::new(),
                kind,
                report,
            }
        };
        let figures = Figures {
            laps: vec![lap(LapKind::Other, 500), lap(LapKind::Quiet, 10)],
            ..Figures::default()
        };
        let added = |kind, millis| figures.added(&lap(kind, millis));
        let of_rotations = added(LapKind::Rotations, 30).unwrap();
        assert!(of_rotations.starts_with("+20."), "{of_rotations}");
        assert!(added(LapKind::Rotations, 5).unwrap().starts_with('-'));
        assert_eq!(added(LapKind::Other, 30), None);
    }

    #[test]
    fn the_median_is_that_of_the_middle_round() {
        let times = |seconds: &[u64]| median(seconds.iter().copied().map(Duration::from_secs));
        assert_eq!(times(&[9, 1, 5]), Duration::from_secs(5));
        assert_eq!(times(&[]), Duration::ZERO);
    }

    #[test]
    fn averages_are_rounded() {
        for (count, of, expected) in [(10, 3, "3.33"), (20, 3, "6.67"), (0, 3, "0.00"), (5, 0, "5.00")] {
            assert_eq!(Average { count, of }.to_string(), expected);
        }
    }
}
