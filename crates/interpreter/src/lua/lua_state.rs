//! A sandboxed Lua state that is reset after each call.

use mlua::{
    Function, HookTriggers, Lua, LuaOptions, MultiValue, StdLib, Table, Value as LuaValue, VmState,
    chunk::ChunkMode, debug::DebugEvent,
};

use windlass_object::text::shortened;

use super::{LuaError, LuaLimits, budget::Budget, globals};

/// A compiled script in its own state, for one call at a time.
pub(super) struct LuaState {
    lua: Lua,
    name: String,
    /// The name, shortened to the length that Lua supports.
    short_name: String,
    script: Function,
    environment: Function,
    /// Calls a function, and limits the number of returned values.
    asked: Function,
    /// Calls a function with few values, and returns its error unchanged.
    protected: Function,
    budget: Budget,
    /// The memory of the state before the first call.
    memory: usize,
}

/// The memory that may remain after a call before garbage is collected.
const KEPT: usize = 1 << 20;

/// The longest name of a script in Lua, with room for an ellipsis.
const LONGEST_NAME: usize = 59 - '…'.len_utf8();

/// The longest script, in bytes.
const LONGEST_SCRIPT: usize = 64 << 10;

/// Keywords that add a branch to a list of jumps with the same target.
const BRANCHES: [&str; 4] = ["and", "or", "break", "elseif"];

/// The maximum number of these keywords.
const MOST_BRANCHES: usize = 4000;

/// The number of instructions between two budget checks while lines are traced.
const TRACED_PERIOD: u32 = 10;

impl LuaState {
    /// Compiles a script in a new state.
    pub(super) fn new(name: &str, source: &str) -> Result<Self, LuaError> {
        compilable(source).map_err(|problem| LuaError::Syntax(format!("{name}: {problem}")))?;
        let start = |error: mlua::Error| LuaError::Start(error.to_string());
        let libraries = StdLib::STRING | StdLib::TABLE | StdLib::MATH;
        let options = LuaOptions::new().catch_rust_panics(false);
        let lua = Lua::new_with(libraries, options).map_err(start)?;
        let budget = Budget::default();
        let protected = lua.globals().raw_get("pcall").map_err(start)?;
        let (environment, asked) = globals::prepare(&lua, &budget).map_err(start)?;
        budget.watch(&lua).map_err(start)?;
        let short_name = shortened(name.to_owned(), LONGEST_NAME);
        let limits = LuaLimits::default();
        lua.set_memory_limit(lua.used_memory() + limits.memory)
            .map_err(start)?;
        let chunk = lua.load(source).set_name(format!("={short_name}"));
        // Only source text, because bytecode can do anything.
        let script = chunk.set_mode(ChunkMode::Text).into_function();
        let script = script.map_err(|error| match LuaError::from(&error) {
            LuaError::OutOfMemory(_) => LuaError::OutOfMemory(limits.memory),
            LuaError::Syntax(problem) if words_of(source).any(|word| word == "goto") => {
                let problem = format!("{problem}; Lua 5.1 has no goto: use if, or return from a function");
                LuaError::Syntax(problem).shortened().named(&short_name, name)
            }
            error => error.shortened().named(&short_name, name),
        })?;
        lua.set_memory_limit(0).map_err(start)?;
        lua.gc_collect().map_err(start)?;
        Ok(Self {
            memory: lua.used_memory(),
            lua,
            name: name.to_owned(),
            short_name,
            script,
            environment,
            asked,
            protected,
            budget,
        })
    }

    /// Runs the script in its own environment, and calls one of its functions after `begin`.
    ///
    /// # Errors
    ///
    /// [`LuaError`]; after a [`LuaError::is_final`] error the state must not be used again.
    pub(super) fn call(
        &self,
        function: &'static str,
        limits: LuaLimits,
        arguments: impl FnOnce(&Lua) -> mlua::Result<MultiValue>,
        begin: impl FnOnce() -> mlua::Result<()>,
    ) -> Result<MultiValue, LuaError> {
        let called = self.with_environment(limits, arguments, |environment, arguments| {
            begin().map_err(|error| LuaError::from(&error))?;
            match global(environment, function)? {
                LuaValue::Function(function) => self.call_protected(function, arguments).map(Some),
                _ => Ok(None),
            }
        });
        called?.ok_or(LuaError::NoFunction(function))
    }

    /// Runs the script; reports whether it defines a function.
    pub(super) fn defines(&self, function: &'static str, limits: LuaLimits) -> Result<bool, LuaError> {
        let none = |_: &Lua| Ok(MultiValue::new());
        self.with_environment(limits, none, |environment, _| {
            Ok(global(environment, function)?.is_function())
        })
    }

    /// Runs the script in a new environment, calls a closure, and discards the environment.
    fn with_environment<T>(
        &self,
        limits: LuaLimits,
        arguments: impl FnOnce(&Lua) -> mlua::Result<MultiValue>,
        work: impl FnOnce(&Table, MultiValue) -> Result<T, LuaError>,
    ) -> Result<T, LuaError> {
        let done = self
            .begin_call(limits, arguments)
            .and_then(|(environment, arguments)| {
                self.call_protected(self.script.clone(), MultiValue::new())?;
                work(&environment, arguments)
            });
        let unlimited = self.lua.set_memory_limit(0);
        let done = match (self.budget.end(), done) {
            (Some(exceeded), _) => Err(exceeded),
            (None, done) => done.and_then(|done| match unlimited {
                Ok(_) => Ok(done),
                Err(error) => Err(LuaError::Start(error.to_string())),
            }),
        };
        done.map_err(|error| match error {
            LuaError::OutOfMemory(_) => LuaError::OutOfMemory(limits.memory),
            error => error.shortened().named(&self.short_name, &self.name),
        })
    }

    fn begin_call(
        &self,
        limits: LuaLimits,
        arguments: impl FnOnce(&Lua) -> mlua::Result<MultiValue>,
    ) -> Result<(Table, MultiValue), LuaError> {
        let begun = || {
            let memory = self.memory.saturating_add(limits.memory);
            // The size of the arguments is checked only once, which is faster: they do not grow.
            let arguments = arguments(&self.lua)?;
            let environment: Table = self.environment.call(())?;
            self.script.set_environment(environment.clone())?;
            if self.lua.used_memory() > memory {
                self.lua.gc_collect()?;
            }
            if self.lua.used_memory() > memory {
                return Err(mlua::Error::external(LuaError::OutOfMemory(limits.memory)));
            }
            self.budget.begin(&self.lua, limits, memory)?;
            self.lua.set_memory_limit(memory)?;
            Ok((environment, arguments))
        };
        begun().map_err(|error| LuaError::from(&error))
    }

    fn call_protected(&self, function: Function, mut arguments: MultiValue) -> Result<MultiValue, LuaError> {
        arguments.push_front(LuaValue::Function(function));
        arguments.push_front(LuaValue::Function(self.asked.clone()));
        let returned = self.protected.call::<MultiValue>(arguments);
        let mut values = returned.map_err(|error| LuaError::from(&error))?;
        match values.pop_front() {
            Some(LuaValue::Boolean(true)) => Ok(values),
            _ => Err(self
                .budget
                .script_error(&values.pop_front().unwrap_or(LuaValue::Nil))),
        }
    }

    /// Calls `on_line` for each line of the script that runs in the active call, in addition to checking the
    /// budget.
    pub(super) fn trace(&self, on_line: impl Fn(usize, usize) + Send + 'static) -> mlua::Result<()> {
        let budget = self.budget.clone();
        let name = self.short_name.clone();
        let triggers = HookTriggers::new()
            .every_line()
            .every_nth_instruction(TRACED_PERIOD);
        self.lua.set_hook(triggers, move |lua, debug| {
            if debug.event() != DebugEvent::Line {
                budget.check(lua, TRACED_PERIOD)?;
            } else if debug.source().short_src.is_some_and(|source| source == name) {
                on_line(debug.current_line().unwrap_or(0), lua.used_memory());
            }
            Ok(VmState::Continue)
        })
    }

    /// Collects garbage of finished calls; reports whether the state can be used again.
    pub(super) fn collect_garbage(&self) -> bool {
        if self.lua.used_memory() < self.memory + KEPT {
            return true;
        }
        self.lua.gc_collect().is_ok() && self.lua.used_memory() < self.memory + KEPT
    }
}

/// Rejects scripts that would take long to compile. The compiler cannot be interrupted, and its time is
/// quadratic in the number of branches with the same target: a megabyte of source can take minutes.
fn compilable(script: &str) -> Result<(), String> {
    if script.len() > LONGEST_SCRIPT {
        return Err(format!("the script is longer than {LONGEST_SCRIPT} bytes"));
    }
    let words = words_of(script);
    let branches = words.filter(|word| BRANCHES.contains(word)).count();
    match branches > MOST_BRANCHES {
        true => Err(format!(
            "the script has more than {MOST_BRANCHES} of {}",
            BRANCHES.join(", ")
        )),
        false => Ok(()),
    }
}

/// Splits a script into names and keywords, including those in comments and strings.
fn words_of(script: &str) -> impl Iterator<Item = &str> {
    script.split(|character: char| !character.is_ascii_alphanumeric() && character != '_')
}

fn global(environment: &Table, name: &str) -> Result<LuaValue, LuaError> {
    let value = environment.raw_get(name);
    value.map_err(|error| LuaError::from(&error))
}
