//! Why a script has no answer.

use crate::Operation;

/// Why a script has no answer. What is said of a script begins with its name and the line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LuaError {
    /// It cannot be compiled.
    #[error("{0}")]
    Syntax(String),
    /// It has no function for what is asked.
    #[error("not found function {0}")]
    NoFunction(&'static str),
    /// It failed.
    #[error("{0}")]
    Script(String),
    /// It took too long.
    #[error("the script took longer than {}s", .0.as_secs_f32())]
    TooSlow(std::time::Duration),
    /// It did too much.
    #[error("the script took more than {0} instructions")]
    TooMuch(u64),
    /// It needs too much memory.
    #[error("the script needs more than {0} bytes of memory")]
    OutOfMemory(usize),
    /// What it returned is no answer.
    #[error("{function} returned {found}, expected {expected}")]
    Type {
        /// The function.
        function: &'static str,
        /// What it is to return.
        expected: &'static str,
        /// What it returned.
        found: String,
    },
    /// What it returned cannot be had as JSON.
    #[error("the result of {function}: {problem}")]
    Result {
        /// The function.
        function: &'static str,
        /// In which way, with the field.
        problem: String,
    },
    /// It cannot be started.
    #[error("cannot start the interpreter of Lua: {0}")]
    Start(String),
}

// === impl Operation ===

impl Operation {
    /// The function of a script that answers it.
    pub fn lua_function(self) -> &'static str {
        match self {
            Self::InterpretReplica => "GetReplicas",
            Self::InterpretComponent => "GetComponents",
            Self::ReviseReplica => "ReviseReplica",
            Self::Retain => "Retain",
            Self::AggregateStatus => "AggregateStatus",
            Self::InterpretStatus => "ReflectStatus",
            Self::InterpretHealth => "InterpretHealth",
            Self::InterpretDependency => "GetDependencies",
        }
    }
}
