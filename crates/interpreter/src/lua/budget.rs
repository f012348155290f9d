//! What a call has used of what it may take.

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

/// The budget of the call that is under way in a state.
#[derive(Clone, Debug, Default)]
pub(super) struct Budget(Arc<Used>);

#[derive(Debug, Default)]
struct Used {
    instructions: AtomicU64,
    /// How many instructions pass now between two looks.
    period: AtomicU32,
    /// From how much memory on they are few.
    crowded: AtomicUsize,
    /// From how much memory on garbage is collected.
    full: AtomicUsize,
    call: Mutex<Option<Call>>,
}

#[derive(Clone, Debug)]
struct Call {
    limits: LuaLimits,
    /// `None` where that is further away than the clock goes.
    ends: Option<Instant>,
    /// How much memory the state may take in all.
    memory: usize,
    exceeded: Option<LuaError>,
}

/// How many instructions pass between two looks.
const PERIOD: u32 = 100;

/// How many where there is much memory in use: one instruction may take milliseconds then, as to join or to compare long strings.
const CROWDED_PERIOD: u32 = 5;

/// How much memory a call takes until it has much.
const CROWDED: usize = 1 << 20;

/// What Lua says where there is no memory left.
const NO_MEMORY: &str = "not enough memory";

// === impl Budget ===

impl Budget {
    /// Has a new state look at its budget.
    pub(super) fn watch(&self, lua: &Lua) -> mlua::Result<()> {
        self.pace(lua, PERIOD)
    }

    /// Begins a call, after which [`Self::end`] says whether it went too far. `memory`: how much the state may take in all.
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
        self.pace(lua, PERIOD)
    }

    /// Ends the call, and tells what it had too much of.
    pub(super) fn end(&self) -> Option<LuaError> {
        self.0.call.lock().take().and_then(|call| call.exceeded)
    }

    fn pace(&self, lua: &Lua, period: u32) -> mlua::Result<()> {
        let budget = self.clone();
        let triggers = HookTriggers::new().every_nth_instruction(period);
        lua.set_hook(triggers, move |lua, _| {
            budget.look(lua, period)?;
            Ok(VmState::Continue)
        })?;
        self.0.period.store(period, Ordering::Relaxed);
        Ok(())
    }

    /// Counts instructions, and makes room.
    pub(super) fn look(&self, lua: &Lua, instructions: u32) -> mlua::Result<()> {
        self.spend(lua, instructions.into())?;
        if lua.used_memory() <= self.0.crowded.load(Ordering::Relaxed) {
            return Ok(());
        }
        if self.0.period.load(Ordering::Relaxed) == PERIOD {
            self.pace(lua, CROWDED_PERIOD)?;
        }
        // Lua 5.1 does not collect garbage where it has no memory left.
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

    /// Counts what was done.
    ///
    /// # Errors
    ///
    /// When that is too much, now or before.
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

    /// Looks whether there is room for what a function makes outside of the state.
    pub(super) fn allow(&self, lua: &Lua, bytes: usize) -> mlua::Result<()> {
        match lua.used_memory().saturating_add(bytes) > self.memory() {
            true => Err(self.out_of_memory()),
            false => Ok(()),
        }
    }

    /// How much memory the state may take in all.
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

    /// The function that raises a limit again, and makes of other errors what a script may see of them.
    pub(super) fn caught_function(self, lua: &Lua) -> mlua::Result<Function> {
        lua.create_function(move |lua, error: LuaValue| {
            self.spend(lua, 0)?;
            match self.caught(&error) {
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

    /// What a script failed with.
    pub(super) fn caught(&self, error: &LuaValue) -> LuaError {
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
