//! The state of a wait.

use std::fmt;

use serde::Serialize;

/// The state of a wait: a message, and optionally all steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct WaitStatus {
    /// What the command waits for, and why.
    pub(crate) message: String,
    /// All steps in order; empty if they are unknown.
    pub(crate) steps: Vec<WaitStep>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct WaitStep {
    pub(crate) name: String,
    pub(crate) state: WaitState,
}

/// Progress of a step that `--wait` reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum WaitState {
    /// The step is done.
    Done,
    /// The wait is for this step.
    Current,
    /// The step follows later.
    Pending,
}

impl WaitStatus {
    /// Returns a wait in steps: the first one that is not done is current.
    pub(crate) fn from_steps<'a>(message: String, steps: impl IntoIterator<Item = (&'a str, bool)>) -> Self {
        let mut is_found = false;
        let state = |is_done: bool| {
            if is_done {
                return WaitState::Done;
            }
            if std::mem::replace(&mut is_found, true) {
                WaitState::Pending
            } else {
                WaitState::Current
            }
        };
        let (names, done): (Vec<_>, Vec<_>) = steps.into_iter().unzip();
        let states = done.into_iter().map(state);
        let steps = names.into_iter().zip(states);
        Self {
            message,
            steps: steps
                .map(|(name, state)| WaitStep {
                    name: name.to_owned(),
                    state,
                })
                .collect(),
        }
    }

    /// Returns the name of the current step.
    pub(crate) fn current(&self) -> Option<&str> {
        let current = self.steps.iter().find(|step| step.state == WaitState::Current)?;
        Some(&current.name)
    }
}

impl From<String> for WaitStatus {
    fn from(message: String) -> Self {
        Self {
            message,
            steps: Vec::new(),
        }
    }
}

/// The current step, if any, and the message.
impl fmt::Display for WaitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.current() {
            Some(step) => write!(f, "{step}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_unfinished_step_is_current() {
        use WaitState::{Current, Done, Pending};
        for (done, expected, text) in [
            ([false, false, false], [Current, Pending, Pending], "a: why"),
            ([true, false, true], [Done, Current, Done], "b: why"),
            ([true, true, true], [Done, Done, Done], "why"),
        ] {
            let waiting = WaitStatus::from_steps("why".to_owned(), ["a", "b", "c"].into_iter().zip(done));
            let states: Vec<_> = waiting.steps.iter().map(|step| step.state).collect();
            assert_eq!(states, expected);
            assert_eq!(waiting.to_string(), text);
        }
    }
}
