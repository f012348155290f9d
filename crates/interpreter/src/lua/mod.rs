//! Answers by scripts: Lua 5.1, without a way out.
//!
//! ```text
//! Question -> arguments as tables -> function of the operation -> results as JSON, emptied fields restored -> Answer
//! ```
//!
//! A script has what Karmada's has: the base functions but those that load code or reach behind tables, `string` without `gsub`,
//! `rep` and `dump`, `table`, `math`, `os.time`, `os.date`, and `require("kube")`. Where we differ, on purpose:
//!
//! - Each call has an environment of its own: a global of one call is not there in the next.
//! - Instructions and memory are limited beside time, and patterns by the steps that matching them takes.
//! - A script is as long and has as many branches as the compiler, which cannot be interrupted, takes no time for.
//! - Errors are no longer than people read.
//! - A table may stand in a result twice, as long as it is not within itself.
//! - `kube.getPodDependencies` returns an empty list where there are none: scripts return it unguarded.
//! - `pairs` visits fields in the order of PUC Lua, not in that of their insertion. No script may count on either.
//! - `goto` is not there, which Lua 5.1 does not have.
//! - `..` writes the first 14 digits of a number, as C does. `tostring`, `string.format` and `table.concat` write it as Karmada's do.
//! - `print` prints nothing.

mod answers;
mod arguments;
mod budget;
mod clock;
mod empties;
mod error;
mod from_lua;
mod globals;
mod kube_library;
mod lua_state;
mod number_text;
mod pattern;
mod program;
mod strings;
mod tables;
#[cfg(test)]
mod tests;
mod to_lua;
mod trace;

use std::time::Duration;

pub use self::{
    error::LuaError,
    program::LuaProgram,
    trace::{LuaTrace, TracedLine},
};

/// What a call of a script may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LuaLimits {
    /// How long, by the clock.
    pub time: Duration,
    /// How many instructions, and steps of patterns.
    pub instructions: u64,
    /// How many bytes, arguments and results among them.
    pub memory: usize,
}

// === impl LuaLimits ===

impl Default for LuaLimits {
    /// A second, as Karmada has it, and 16 MiB.
    fn default() -> Self {
        Self {
            time: Duration::from_secs(1),
            instructions: 200_000_000,
            memory: 16 << 20,
        }
    }
}
