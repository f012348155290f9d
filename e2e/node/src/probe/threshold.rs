//! How many answers in a row make a difference.

/// Counts equal answers in a row.
#[derive(Clone, Debug)]
pub(crate) struct Threshold {
    successes: u32,
    failures: u32,
    passed: bool,
    /// Answers in a row that differ from `passed`.
    row: u32,
}

// === impl Threshold ===

impl Threshold {
    /// So many successes in a row make it pass, so many failures make it fail.
    pub(crate) fn new(successes: u32, failures: u32, passed: bool) -> Self {
        Self {
            successes,
            failures,
            passed,
            row: 0,
        }
    }

    /// Counts an answer; says what holds from now on if that changes.
    pub(crate) fn count(&mut self, success: bool) -> Option<bool> {
        if success == self.passed {
            self.row = 0;
            return None;
        }
        self.row += 1;
        if self.row < if success { self.successes } else { self.failures } {
            return None;
        }
        self.row = 0;
        self.passed = success;
        Some(success)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn changes(successes: u32, failures: u32, passed: bool, answers: &str) -> String {
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
            (1, 3, false, "--+", "..+"),
            (1, 3, true, "--+---", ".....-"),
            (2, 1, false, "+-++-", "...+-"),
            (1, 1, true, "+-+", ".-+"),
            (3, 3, false, "---", "..."),
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
            for change in changes(successes, failures, passed, &answers).chars().filter(|change| *change != '.') {
                prop_assert_eq!(change == '+', !before);
                before = !before;
            }
        }
    }
}
