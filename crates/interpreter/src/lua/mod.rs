//! Answers of scripts: sandboxed Lua 5.1.
//!
//! ```text
//! Question -> arguments as tables -> function of the operation -> results as JSON, empty fields restored -> Answer
//! ```
//!
//! Scripts have the same libraries as in Karmada: the base functions except those that load code or bypass metatables, `string` without
//! `gsub`, `rep` and `dump`, `table`, `math`, `os.time`, `os.date`, and `require("kube")`. Intentional differences:
//!
//! - Each call has its own environment: globals do not persist between calls.
//! - Instructions and memory are limited in addition to time, and so are the steps of pattern matching.
//! - The length of a script and the number of its branches are limited, because the compiler cannot be interrupted.
//! - Long error messages are shortened.
//! - A table may occur twice in a result, but must not contain itself.
//! - `kube.getPodDependencies` returns an empty list if there are none, because scripts return it without a check.
//! - `pairs` visits fields in the order of PUC Lua instead of insertion order. Scripts must not rely on either.
//! - There is no `goto`, as in Lua 5.1.
//! - `..` formats the first 14 digits of a number, as C does. `tostring`, `string.format` and `table.concat` format it as in Karmada.
//! - `print` prints nothing.

mod answers;
mod arguments;
mod budget;
mod clock;
mod empty_fields;
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

/// Limits on the time, instructions and memory of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LuaLimits {
    /// The maximum wall-clock time.
    pub time: Duration,
    /// The maximum number of instructions and pattern steps.
    pub instructions: u64,
    /// The maximum memory in bytes, including arguments and results.
    pub memory: usize,
}

impl Default for LuaLimits {
    /// One second, as in Karmada, and 16 MiB.
    fn default() -> Self {
        Self {
            time: Duration::from_secs(1),
            instructions: 200_000_000,
            memory: 16 << 20,
        }
    }
}
