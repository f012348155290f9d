//! Why a script has no answer.

use std::{mem, time::Duration};

use windlass_object::text::shortened;

use crate::Operation;

/// Why a script has no answer. What is said of a script begins with its name and the line, where it is at one.
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
    #[error("{}took longer than {}s", before(place), time.as_secs_f32())]
    TooSlow {
        /// The name of the script and the line that it was at.
        place: String,
        /// How long it may take.
        time: Duration,
    },
    /// It did too much.
    #[error("{}took more than {instructions} instructions", before(place))]
    TooMuch {
        /// The name of the script and the line that it was at.
        place: String,
        /// How many it may take.
        instructions: u64,
    },
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

/// The longest text of an error, in bytes.
const LONGEST: usize = 1024;

fn before(place: &str) -> String {
    match place {
        "" => "the script ".to_owned(),
        place => format!("{place}: the script "),
    }
}

// === impl LuaError ===

impl LuaError {
    /// Whether a state may be spoiled in which it happened.
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

    /// The same, of no more than people read: a script may fail with a text of megabytes.
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

    /// The same of a script whose name is cut short where it is said.
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

/// The stack says nothing to people.
fn without_stack(text: &str) -> String {
    let text = text.split("\nstack traceback:").next().unwrap_or_default();
    text.to_owned()
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
