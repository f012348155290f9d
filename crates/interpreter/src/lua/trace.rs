//! Traces the executed lines of a script, with their time and memory.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::LuaError;
use crate::Answer;

/// The trace of a call.
#[derive(Debug)]
pub struct LuaTrace {
    /// The name of the script.
    pub name: String,
    /// The executed lines in order, at most [`LuaTrace::LONGEST`].
    pub lines: Vec<TracedLine>,
    /// The result of the call.
    pub answer: Result<Answer, LuaError>,
}

/// A line that the script executed, with its time and memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedLine {
    /// The line number, from 1.
    pub number: usize,
    /// The source text.
    pub text: Arc<str>,
    /// The time until the next line.
    pub time: Duration,
    /// The memory of the state at the start of the line, in bytes.
    pub memory: usize,
}

/// The recording of an active call.
#[derive(Clone)]
pub(super) struct Tracing(Arc<Mutex<Vec<(usize, Instant, usize)>>>);

impl LuaTrace {
    /// The maximum number of recorded lines.
    pub const LONGEST: usize = 100_000;
}

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
