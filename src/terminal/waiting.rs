//! What a command waits for.

use std::fmt;

use serde::Serialize;

/// What is waited for, and which of the steps to the end that is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Waiting {
    /// What is waited for, and why.
    pub(crate) message: String,
    /// The steps to the end in their order; none where these are not known.
    pub(crate) steps: Vec<WaitStep>,
}

/// One of the steps to the end of what is waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct WaitStep {
    /// What it is called.
    pub(crate) name: String,
    /// How far it is.
    pub(crate) state: WaitState,
}

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum WaitState {
    /// It is done.
    Done,
    /// It is the one that is waited for.
    Current,
    /// It comes later.
    Pending,
}

// === impl Waiting ===

impl Waiting {
    /// Waiting in steps, of which each is done or not: the first that is not is the current one.
    pub(crate) fn in_turn<'a>(message: String, steps: impl IntoIterator<Item = (&'a str, bool)>) -> Self {
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

    /// The step that is waited for.
    pub(crate) fn current(&self) -> Option<&str> {
        let current = self.steps.iter().find(|step| step.state == WaitState::Current)?;
        Some(&current.name)
    }
}

impl From<String> for Waiting {
    fn from(message: String) -> Self {
        Self {
            message,
            steps: Vec::new(),
        }
    }
}

/// In one sentence: the step, if there is one, and what is waited for.
impl fmt::Display for Waiting {
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
    fn the_first_step_that_is_not_done_is_waited_for() {
        use WaitState::{Current, Done, Pending};
        for (done, expected, said) in [
            ([false, false, false], [Current, Pending, Pending], "a: why"),
            ([true, false, true], [Done, Current, Done], "b: why"),
            ([true, true, true], [Done, Done, Done], "why"),
        ] {
            let waiting = Waiting::in_turn("why".to_owned(), ["a", "b", "c"].into_iter().zip(done));
            let states: Vec<_> = waiting.steps.iter().map(|step| step.state).collect();
            assert_eq!(states, expected);
            assert_eq!(waiting.to_string(), said);
        }
    }
}
