//! Maps times to positions on a line from now to the last expiry.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

/// The part of the line before now, in percent, which shows expired certificates.
const BEFORE: f64 = 4.0;

/// The shortest time span of the line.
const SHORTEST: SignedDuration = SignedDuration::from_hours(24 * 30);

/// The approximate number of marks.
const MARKS: i32 = 5;

/// A line from shortly before now to the last expiry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TimeLine {
    now: Timestamp,
    length: SignedDuration,
}

/// A mark on the line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TimeMark {
    /// Position of the mark, in percent of the line.
    pub(crate) at: f64,
    pub(crate) text: String,
}

impl TimeLine {
    /// Creates a line that ends at the last of these times.
    pub(crate) fn new(now: Timestamp, ends: impl IntoIterator<Item = Timestamp>) -> Self {
        let last = ends.into_iter().max().unwrap_or(now);
        Self {
            now,
            length: last.duration_since(now).max(SHORTEST),
        }
    }

    /// Returns the position of a time, in percent of the line.
    pub(crate) fn position(&self, moment: Timestamp) -> f64 {
        let share = moment.duration_since(self.now).as_secs_f64() / self.length.as_secs_f64();
        (BEFORE + share * (100.0 - BEFORE)).clamp(0.0, 100.0)
    }

    /// Returns marks at roughly equal distances of whole days, starting now.
    pub(crate) fn marks(&self) -> Vec<TimeMark> {
        (0..MARKS)
            .filter_map(|number| {
                let moment = self.now.checked_add(self.length * number / MARKS).ok()?;
                let day = moment.to_zoned(TimeZone::UTC).date();
                Some(TimeMark {
                    at: self.position(moment),
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
        assert!((line.position(at(365)) - 100.0).abs() < 1e-9);
        assert!((line.position(at(0)) - BEFORE).abs() < 1e-9);
        assert!(line.position(at(-1)) < BEFORE);
        let marks = line.marks();
        assert_eq!(marks[0].text, "2026-11-22");
        assert_eq!(marks.len(), 5);
    }

    #[test]
    fn a_time_line_without_certificates_spans_a_month() {
        let line = TimeLine::new(at(0), []);
        assert!((line.position(at(30)) - 100.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn positions_are_monotonic_and_in_range(
            ends in prop::collection::vec(-4000_i64..4000, 0..8), moments in prop::collection::vec(-9000_i64..9000, 2..8),
        ) {
            let line = TimeLine::new(at(0), ends.into_iter().map(at));
            let mut moments = moments;
            moments.sort_unstable();
            let places: Vec<_> = moments.into_iter().map(|day| line.position(at(day))).collect();
            prop_assert!(places.iter().all(|place| (0.0..=100.0).contains(place)));
            prop_assert!(places.is_sorted());
        }
    }
}
