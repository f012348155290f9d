//! What a call has used of what it may take.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use mlua::{HookTriggers, Lua, VmState};
use parking_lot::Mutex;

use super::{LuaError, LuaLimits};

/// The budget of the call that is under way in a state.
#[derive(Clone, Debug, Default)]
pub(super) struct Budget(Arc<Used>);

#[derive(Debug, Default)]
struct Used {
    instructions: AtomicU64,
    call: Mutex<Option<Call>>,
}

#[derive(Clone, Debug)]
struct Call {
    limits: LuaLimits,
    ends: Instant,
    exceeded: Option<LuaError>,
}

/// How many instructions pass between two looks at the clock.
const PERIOD: u32 = 1000;

// === impl Budget ===

impl Budget {
    /// Begins a call, after which [`Self::take`] says whether it went too far.
    pub(super) fn begin(&self, lua: &Lua, limits: LuaLimits) -> mlua::Result<()> {
        self.0.instructions.store(0, Ordering::Relaxed);
        *self.0.call.lock() = Some(Call {
            limits,
            ends: Instant::now() + limits.time,
            exceeded: None,
        });
        let budget = self.clone();
        let triggers = HookTriggers::new().every_nth_instruction(PERIOD);
        lua.set_hook(triggers, move |lua, _| match budget.spend(PERIOD.into()) {
            Ok(()) => Ok(VmState::Continue),
            Err(error) => {
                // `pcall` would catch it once in a thousand instructions, and go on.
                let again = mlua::Error::external(error);
                let raised = again.clone();
                let every = HookTriggers::new().every_nth_instruction(1);
                lua.set_hook(every, move |_, _| Err(raised.clone()))?;
                Err(again)
            }
        })
    }

    /// Counts what was done.
    ///
    /// # Errors
    ///
    /// When that is too much, now or before.
    pub(super) fn spend(&self, instructions: u64) -> Result<(), LuaError> {
        let used = self.0.instructions.fetch_add(instructions, Ordering::Relaxed) + instructions;
        let mut call = self.0.call.lock();
        let Some(call) = &mut *call else {
            return Ok(());
        };
        if call.exceeded.is_none() && used > call.limits.instructions {
            call.exceeded = Some(LuaError::TooMuch(call.limits.instructions));
        } else if call.exceeded.is_none() && Instant::now() >= call.ends {
            call.exceeded = Some(LuaError::TooSlow(call.limits.time));
        }
        call.exceeded.clone().map_or(Ok(()), Err)
    }

    /// Ends the call, and tells what it had too much of.
    pub(super) fn take(&self) -> Option<LuaError> {
        self.0.call.lock().take().and_then(|call| call.exceeded)
    }
}
