//! How many answers in a row make a difference.

/// Counts equal answers in a row.
#[derive(Clone, Debug)]
pub(super) struct Threshold {
    successes: u32,
    failures: u32,
    /// What holds; `None` until enough answers were counted.
    passed: Option<bool>,
    last: bool,
    row: u32,
}

impl Threshold {
    /// So many successes in a row make it pass, so many failures make it fail.
    pub(super) fn new(successes: u32, failures: u32, passed: Option<bool>) -> Self {
        Self {
            successes,
            failures,
            passed,
            last: false,
            row: 0,
        }
    }

    /// Counts an answer; says what holds from now on if that changes.
    pub(super) fn count(&mut self, success: bool) -> Option<bool> {
        if success != self.last {
            (self.last, self.row) = (success, 0);
        }
        self.row = self.row.saturating_add(1);
        let enough = self.row >= if success { self.successes } else { self.failures };
        if !enough || self.passed == Some(success) {
            return None;
        }
        self.passed = Some(success);
        self.passed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn changes(successes: u32, failures: u32, passed: Option<bool>, answers: &str) -> String {
        let mut threshold = Threshold::new(successes, failures, passed);
        let name = |change| match change {
            None => '.',
            Some(true) => '+',
            Some(false) => '-',
        };
        answers
            .chars()
            .map(|answer| name(threshold.count(answer == '+')))
            .collect()
    }

    #[test]
    fn only_answers_in_a_row_count() {
        for (successes, failures, passed, answers, expected) in [
            (1, 3, Some(false), "--+", "..+"),
            (1, 3, Some(true), "--+---", ".....-"),
            (2, 1, Some(false), "+-++-", "...+-"),
            (1, 1, Some(true), "+-+", ".-+"),
            (3, 3, Some(false), "---", "..."),
            (1, 3, None, "--+", "..+"),
            (1, 3, None, "----", "..-."),
        ] {
            assert_eq!(
                changes(successes, failures, passed, answers),
                expected,
                "{answers}"
            );
        }
    }

    proptest! {
        #[test]
        fn changes_alternate(successes in 1_u32..4, failures in 1_u32..4, passed: bool, answers in "[+-]{0,40}") {
            let mut before = passed;
            for change in changes(successes, failures, Some(passed), &answers).chars().filter(|change| *change != '.') {
                prop_assert_eq!(change == '+', !before);
                before = !before;
            }
        }
    }
}
