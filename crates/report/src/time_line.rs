//! Moments as places between now and the last thing that ends.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

/// How much of the line is before now, in percent: what has ended is seen there.
const BEFORE: f64 = 4.0;

/// The shortest line.
const SHORTEST: SignedDuration = SignedDuration::from_hours(24 * 30);

/// How many marks a line has, about.
const MARKS: i32 = 5;

/// A line from shortly before now to the last thing that ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TimeLine {
    now: Timestamp,
    length: SignedDuration,
}

/// A mark of a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TimeMark {
    /// Where it is, in percent of the line.
    pub(crate) at: f64,
    /// What is written there.
    pub(crate) text: String,
}

// === impl TimeLine ===

impl TimeLine {
    /// A line that reaches to the last of these moments.
    pub(crate) fn new(now: Timestamp, ends: impl IntoIterator<Item = Timestamp>) -> Self {
        let last = ends.into_iter().max().unwrap_or(now);
        Self {
            now,
            length: last.duration_since(now).max(SHORTEST),
        }
    }

    /// Where a moment is, in percent of the line.
    pub(crate) fn place(&self, moment: Timestamp) -> f64 {
        let share = moment.duration_since(self.now).as_secs_f64() / self.length.as_secs_f64();
        (BEFORE + share * (100.0 - BEFORE)).clamp(0.0, 100.0)
    }

    /// Days at about equal distances, the first of them now.
    pub(crate) fn marks(&self) -> Vec<TimeMark> {
        (0..MARKS)
            .filter_map(|number| {
                let moment = self.now.checked_add(self.length * number / MARKS).ok()?;
                let day = moment.to_zoned(TimeZone::UTC).date();
                Some(TimeMark {
                    at: self.place(moment),
                    text: day.to_string(),
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(days: i64) -> Timestamp {
        let now: Timestamp = "2026-11-22T00:00:00Z".parse().unwrap();
        now + SignedDuration::from_hours(24 * days)
    }

    #[test]
    fn marks_are_ordered_on_the_time_line() {
        let line = TimeLine::new(at(0), [at(90), at(365)]);
        assert!((line.place(at(365)) - 100.0).abs() < 1e-9);
        assert!((line.place(at(0)) - BEFORE).abs() < 1e-9);
        assert!(line.place(at(-1)) < BEFORE);
        let marks = line.marks();
        assert_eq!(marks[0].text, "2026-11-22");
        assert_eq!(marks.len(), 5);
    }

    #[test]
    fn a_time_line_without_certificates_spans_a_month() {
        let line = TimeLine::new(at(0), []);
        assert!((line.place(at(30)) - 100.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn positions_are_monotonic_and_in_range(
            ends in prop::collection::vec(-4000_i64..4000, 0..8), moments in prop::collection::vec(-9000_i64..9000, 2..8),
        ) {
            let line = TimeLine::new(at(0), ends.into_iter().map(at));
            let mut moments = moments;
            moments.sort_unstable();
            let places: Vec<_> = moments.into_iter().map(|day| line.place(at(day))).collect();
            prop_assert!(places.iter().all(|place| (0.0..=100.0).contains(place)));
            prop_assert!(places.is_sorted());
        }
    }
}
