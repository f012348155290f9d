//! Limits on the time, instructions and memory of a call.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    time::Instant,
};

use mlua::{Function, HookTriggers, Lua, Value as LuaValue, VmState};
use parking_lot::Mutex;

use super::{LuaError, LuaLimits, arguments, globals::without_place};

/// The budget of the active call of a Lua state.
#[derive(Clone, Debug, Default)]
pub(super) struct Budget(Arc<Used>);

#[derive(Debug, Default)]
struct Used {
    instructions: AtomicU64,
    /// The current number of instructions between two checks.
    period: AtomicU32,
    /// The memory from which on checks are more frequent.
    crowded: AtomicUsize,
    /// The memory from which on garbage is collected.
    full: AtomicUsize,
    call: Mutex<Option<Call>>,
}

#[derive(Clone, Debug)]
struct Call {
    limits: LuaLimits,
    /// `None` if the deadline is beyond the range of the clock.
    ends: Option<Instant>,
    /// The memory limit of the whole state.
    memory: usize,
    exceeded: Option<LuaError>,
}

/// The number of instructions between two checks.
const PERIOD: u32 = 100;

/// The number of instructions between two checks when much memory is in use: one instruction may take
/// milliseconds then, for example to concatenate or compare long strings.
const CROWDED_PERIOD: u32 = 5;

/// How much memory a call may use before checks become more frequent.
const CROWDED: usize = 1 << 20;

/// Lua's message when it is out of memory.
const NO_MEMORY: &str = "not enough memory";

impl Budget {
    /// Makes a new state check its budget.
    pub(super) fn watch(&self, lua: &Lua) -> mlua::Result<()> {
        self.set_check_interval(lua, PERIOD)
    }

    /// Starts a call with a memory limit for the whole state; [`Self::end`] reports exceeded limits.
    pub(super) fn begin(&self, lua: &Lua, limits: LuaLimits, memory: usize) -> mlua::Result<()> {
        let used = lua.used_memory();
        self.0.instructions.store(0, Ordering::Relaxed);
        self.0.crowded.store(used + CROWDED, Ordering::Relaxed);
        let full = used.max(memory / 2);
        self.0.full.store(full, Ordering::Relaxed);
        *self.0.call.lock() = Some(Call {
            limits,
            ends: Instant::now().checked_add(limits.time),
            memory,
            exceeded: None,
        });
        if self.0.period.load(Ordering::Relaxed) == PERIOD {
            return Ok(());
        }
        self.set_check_interval(lua, PERIOD)
    }

    /// Ends the call; returns the limit that it exceeded, if any.
    pub(super) fn end(&self) -> Option<LuaError> {
        self.0.call.lock().take().and_then(|call| call.exceeded)
    }

    fn set_check_interval(&self, lua: &Lua, period: u32) -> mlua::Result<()> {
        let budget = self.clone();
        let triggers = HookTriggers::new().every_nth_instruction(period);
        lua.set_hook(triggers, move |lua, _| {
            budget.check(lua, period)?;
            Ok(VmState::Continue)
        })?;
        self.0.period.store(period, Ordering::Relaxed);
        Ok(())
    }

    /// Counts instructions, and collects garbage if necessary.
    pub(super) fn check(&self, lua: &Lua, instructions: u32) -> mlua::Result<()> {
        self.spend(lua, instructions.into())?;
        if lua.used_memory() <= self.0.crowded.load(Ordering::Relaxed) {
            return Ok(());
        }
        if self.0.period.load(Ordering::Relaxed) == PERIOD {
            self.set_check_interval(lua, CROWDED_PERIOD)?;
        }
        // Lua 5.1 does not collect garbage when it runs out of memory.
        if lua.used_memory() > self.0.full.load(Ordering::Relaxed) {
            lua.gc_collect()?;
            let call = self.0.call.lock();
            let most = call.as_ref().map_or(usize::MAX, |call| call.memory);
            let left = most.saturating_sub(lua.used_memory());
            let full = lua.used_memory().max(most / 2).saturating_add(left / 4);
            self.0.full.store(full, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Counts instructions.
    ///
    /// # Errors
    ///
    /// When a limit is exceeded, now or earlier.
    pub(super) fn spend(&self, lua: &Lua, instructions: u64) -> mlua::Result<()> {
        let used = self.0.instructions.fetch_add(instructions, Ordering::Relaxed) + instructions;
        let mut call = self.0.call.lock();
        let Some(call) = &mut *call else {
            return Ok(());
        };
        if let Some(exceeded) = &call.exceeded {
            return Err(mlua::Error::external(exceeded.clone()));
        }
        let place = || arguments::place(lua).unwrap_or_default();
        let exceeded = if used > call.limits.instructions {
            LuaError::TooMuch {
                place: place(),
                instructions: call.limits.instructions,
            }
        } else if call.ends.is_some_and(|ends| Instant::now() >= ends) {
            LuaError::TooSlow {
                place: place(),
                time: call.limits.time,
            }
        } else {
            return Ok(());
        };
        call.exceeded = Some(exceeded.clone());
        Err(mlua::Error::external(exceeded))
    }

    /// Checks that a function may allocate memory outside of the state.
    pub(super) fn allow(&self, lua: &Lua, bytes: usize) -> mlua::Result<()> {
        match lua.used_memory().saturating_add(bytes) > self.memory() {
            true => Err(self.out_of_memory()),
            false => Ok(()),
        }
    }

    /// The memory limit of the whole state.
    pub(super) fn memory(&self) -> usize {
        self.0.call.lock().as_ref().map_or(usize::MAX, |call| call.memory)
    }

    fn out_of_memory(&self) -> mlua::Error {
        let mut call = self.0.call.lock();
        let bytes = call.as_ref().map_or(0, |call| call.limits.memory);
        let error = LuaError::OutOfMemory(bytes);
        if let Some(call) = &mut *call {
            call.exceeded.get_or_insert_with(|| error.clone());
        }
        mlua::Error::external(error)
    }

    /// Creates the function that raises a limit error again, and converts other errors to what scripts may
    /// see.
    pub(super) fn caught_function(self, lua: &Lua) -> mlua::Result<Function> {
        lua.create_function(move |lua, error: LuaValue| {
            self.spend(lua, 0)?;
            match self.script_error(&error) {
                LuaError::Script(_) => match &error {
                    LuaValue::Error(error) => {
                        let text = LuaError::from(&**error).to_string();
                        lua.create_string(text).map(LuaValue::String)
                    }
                    LuaValue::String(text) => {
                        let text = text.as_bytes();
                        match without_place(&text) {
                            rest if rest.len() < text.len() => lua.create_string(rest).map(LuaValue::String),
                            _ => Ok(error.clone()),
                        }
                    }
                    _ => Ok(error),
                },
                limit => Err(mlua::Error::external(limit)),
            }
        })
    }

    /// Converts the error value of a script.
    pub(super) fn script_error(&self, error: &LuaValue) -> LuaError {
        let error = match error {
            LuaValue::Error(error) => LuaError::from(&**error),
            LuaValue::String(text) if text == NO_MEMORY => LuaError::OutOfMemory(0),
            LuaValue::String(text) => {
                let text = String::from_utf8_lossy(without_place(&text.as_bytes())).into_owned();
                LuaError::Script(text)
            }
            LuaValue::Integer(number) => LuaError::Script(number.to_string()),
            LuaValue::Number(number) => LuaError::Script(number.to_string()),
            other => {
                let problem = format!("error object is a {} value", arguments::type_name(other));
                LuaError::Script(problem)
            }
        };
        match error {
            LuaError::OutOfMemory(_) => LuaError::from(&self.out_of_memory()),
            error => error,
        }
    }
}
