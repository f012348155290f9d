//! Which lines of a script run, and what each takes.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::LuaError;
use crate::Answer;

/// A call, line by line.
#[derive(Debug)]
pub struct LuaTrace {
    /// The name of the script.
    pub name: String,
    /// The lines in the order in which they ran, up to [`LuaTrace::LONGEST`].
    pub lines: Vec<TracedLine>,
    /// What came of it.
    pub answer: Result<Answer, LuaError>,
}

/// A line that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedLine {
    /// Its number, from 1.
    pub number: usize,
    /// What stands there.
    pub text: Arc<str>,
    /// How long it took until the next.
    pub time: Duration,
    /// How many bytes the state took when it began.
    pub memory: usize,
}

/// A call under way.
#[derive(Clone)]
pub(super) struct Tracing(Arc<Mutex<Vec<(usize, Instant, usize)>>>);

// === impl LuaTrace ===

impl LuaTrace {
    /// The most lines that are kept.
    pub const LONGEST: usize = 100_000;
}

// === impl Tracing ===

impl Tracing {
    pub(super) fn begin() -> Self {
        Self(Arc::default())
    }

    pub(super) fn note(&self, line: usize, memory: usize) {
        let mut lines = self.0.lock();
        if lines.len() < LuaTrace::LONGEST {
            lines.push((line, Instant::now(), memory));
        }
    }

    pub(super) fn end(&self, name: &str, script: &str, answer: Result<Answer, LuaError>) -> LuaTrace {
        let noted = self.0.lock();
        let texts: Vec<Arc<str>> = script.lines().map(Arc::from).collect();
        let ended = Instant::now();
        let next = noted.iter().skip(1).map(|(_, at, _)| *at).chain([ended]);
        let lines = noted
            .iter()
            .zip(next)
            .map(|((number, at, memory), next)| TracedLine {
                number: *number,
                text: texts
                    .get(number.wrapping_sub(1))
                    .cloned()
                    .unwrap_or_else(|| Arc::from("")),
                time: next - *at,
                memory: *memory,
            });
        LuaTrace {
            name: name.to_owned(),
            lines: lines.collect(),
            answer,
        }
    }
}
