//! Errors of scripts.

use std::{mem, time::Duration};

use windlass_object::text::shortened;

use crate::Operation;

/// Why a script has no answer. Most messages begin with the name of the script and the line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum LuaError {
    /// The script does not compile.
    #[error("{0}")]
    Syntax(String),
    /// The script lacks the function of the operation.
    #[error("not found function {0}")]
    NoFunction(&'static str),
    /// The script failed.
    #[error("{0}")]
    Script(String),
    /// The script exceeded the time limit.
    #[error("{}took longer than {}s", before(place), time.as_secs_f32())]
    TooSlow {
        /// The name of the script and the line.
        place: String,
        /// The time limit.
        time: Duration,
    },
    /// The script exceeded the instruction limit.
    #[error("{}took more than {instructions} instructions", before(place))]
    TooMuch {
        /// The name of the script and the line.
        place: String,
        /// The instruction limit.
        instructions: u64,
    },
    /// The script exceeded the memory limit.
    #[error("the script needs more than {0} bytes of memory")]
    OutOfMemory(usize),
    /// The function returned a value of the wrong type.
    #[error("{function} returned {found}, expected {expected}")]
    Type {
        function: &'static str,
        /// The expected type.
        expected: &'static str,
        /// The actual type.
        found: String,
    },
    /// The returned value cannot be converted to JSON.
    #[error("the result of {function}: {problem}")]
    Result {
        function: &'static str,
        /// The problem, with its field.
        problem: String,
    },
    /// The Lua state cannot be created.
    #[error("cannot start the interpreter of Lua: {0}")]
    Start(String),
}

/// The longest error message, in bytes.
const LONGEST: usize = 1024;

fn before(place: &str) -> String {
    match place {
        "" => "the script ".to_owned(),
        place => format!("{place}: the script "),
    }
}

impl LuaError {
    /// Reports whether the Lua state may be corrupt after this error.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::TooSlow { .. } | Self::TooMuch { .. } | Self::OutOfMemory(_) | Self::Start(_) => true,
            Self::Syntax(_)
            | Self::NoFunction(_)
            | Self::Script(_)
            | Self::Type { .. }
            | Self::Result { .. } => false,
        }
    }

    /// Shortens the message: a script may fail with megabytes of text.
    pub(super) fn shortened(mut self) -> Self {
        if let Self::Syntax(text)
        | Self::Script(text)
        | Self::Result { problem: text, .. }
        | Self::Start(text) = &mut self
        {
            *text = shortened(mem::take(text), LONGEST);
        }
        self
    }

    /// Replaces the shortened name of the script by its full name.
    pub(super) fn named(mut self, short: &str, name: &str) -> Self {
        if let Self::Syntax(text)
        | Self::Script(text)
        | Self::TooSlow { place: text, .. }
        | Self::TooMuch { place: text, .. } = &mut self
            && let Some(rest) = text.strip_prefix(short).filter(|rest| rest.starts_with(':'))
        {
            *text = format!("{name}{rest}");
        }
        self
    }
}

impl From<&mlua::Error> for LuaError {
    fn from(error: &mlua::Error) -> Self {
        match error {
            mlua::Error::MemoryError(_) => Self::OutOfMemory(0),
            mlua::Error::CallbackError { cause, .. } | mlua::Error::WithContext { cause, .. } => {
                Self::from(&**cause)
            }
            mlua::Error::RuntimeError(text) => Self::Script(without_stack(text)),
            mlua::Error::SyntaxError { message, .. } => Self::Syntax(without_stack(message)),
            error => match error.downcast_ref::<Self>() {
                Some(error) => error.clone(),
                None => Self::Script(without_stack(&error.to_string())),
            },
        }
    }
}

/// Removes the stack trace.
fn without_stack(text: &str) -> String {
    let text = text.split("\nstack traceback:").next().unwrap_or_default();
    text.to_owned()
}

impl Operation {
    /// Returns the name of the function that a script defines for the operation.
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
