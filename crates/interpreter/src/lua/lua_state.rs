//! A state of Lua from which nothing leads out, and in which no call leaves anything behind.

use mlua::{
    Function, HookTriggers, Lua, LuaOptions, LuaString, MultiValue, StdLib, Table, Value as LuaValue,
    Variadic, VmState,
};

use super::{LuaError, LuaLimits, budget::Budget, kube_library, strings};

/// A compiled script in a state of its own, for one call at a time.
pub(super) struct LuaState {
    name: String,
    lua: Lua,
    script: Function,
    /// What the environment of each call falls back to.
    base: Table,
    budget: Budget,
    /// What the state takes without any call.
    memory: usize,
}

/// Base functions that a script may have: the rest loads code, or reaches behind tables.
const BASE: [&str; 11] = [
    "assert", "error", "next", "pcall", "select", "tonumber", "tostring", "type", "unpack", "pairs", "ipairs",
];

/// Those that are not there, and say so.
const MISSING: [&str; 14] = [
    "collectgarbage",
    "dofile",
    "getfenv",
    "getmetatable",
    "load",
    "loadfile",
    "loadstring",
    "rawequal",
    "rawget",
    "rawset",
    "setfenv",
    "setmetatable",
    "module",
    "newproxy",
];

/// `xpcall` without hooks being off while the handler runs, as they are where the error is one of a hook: it could run for ever.
const XPCALL: &str = "
    local pcall = ...
    local function finish(handler, succeeds, ...)
        if succeeds then return true, ... end
        return false, handler((...))
    end
    return function(run, handler) return finish(handler, pcall(run)) end
";

/// Functions of `os` that only tell the time.
const TIME: [&str; 2] = ["time", "date"];

/// What Lua calls a script, since it cuts long names off.
const CHUNK: &str = "script";

/// How much memory a state may keep after a call before it is collected.
const KEPT: usize = 1 << 20;

// === impl LuaState ===

impl LuaState {
    /// Compiles a script into a new state.
    pub(super) fn new(name: &str, script: &str) -> Result<Self, LuaError> {
        let start = |error: mlua::Error| LuaError::Start(error.to_string());
        let libraries = StdLib::STRING | StdLib::TABLE | StdLib::MATH | StdLib::OS;
        let lua = Lua::new_with(libraries, LuaOptions::default()).map_err(start)?;
        let budget = Budget::default();
        let base = base(&lua, &budget).map_err(start)?;
        let chunk = lua.load(script).set_name(format!("={CHUNK}"));
        // Text only: what is compiled already may do anything.
        let compiled = chunk.set_mode(mlua::chunk::ChunkMode::Text).into_function();
        let script = compiled.map_err(|error| LuaError::Syntax(message(&error, name)))?;
        lua.gc_collect().map_err(start)?;
        let memory = lua.used_memory();
        Ok(Self {
            name: name.to_owned(),
            lua,
            script,
            base,
            budget,
            memory,
        })
    }

    /// Runs the script in an environment of its own, and then calls one of its functions, after `begin`.
    ///
    /// # Errors
    ///
    /// [`LuaError`]; where [`LuaError::is_final`], the state is not to be used again.
    pub(super) fn call(
        &self,
        function: &'static str,
        limits: LuaLimits,
        arguments: impl FnOnce(&Lua) -> mlua::Result<MultiValue>,
        begin: impl FnOnce() -> mlua::Result<()>,
    ) -> Result<MultiValue, LuaError> {
        let called = self.prepared(limits, |environment| {
            // Arguments are no larger than they were before: that they fit is looked at once, which is quicker.
            let arguments = arguments(&self.lua)?;
            self.limit(limits)?;
            self.run(environment, limits)?;
            begin()?;
            match environment.raw_get(function)? {
                LuaValue::Function(function) => function.call::<MultiValue>(arguments).map(Some),
                _ => Ok(None),
            }
        });
        called?.ok_or(LuaError::NoFunction(function))
    }

    /// Runs the script, and tells whether it has a function.
    pub(super) fn defines(&self, function: &'static str, limits: LuaLimits) -> Result<bool, LuaError> {
        self.prepared(limits, |environment| {
            self.limit(limits)?;
            self.run(environment, limits)?;
            let value: LuaValue = environment.raw_get(function)?;
            Ok(value.is_function())
        })
    }

    /// Works in an environment of its own, without a limit of memory before and after that.
    fn prepared<T>(
        &self,
        limits: LuaLimits,
        work: impl FnOnce(&Table) -> mlua::Result<T>,
    ) -> Result<T, LuaError> {
        let done = self.environment().and_then(|environment| work(&environment));
        self.lua.remove_hook();
        let unlimited = self.lua.set_memory_limit(0);
        match (self.budget.take(), done.and_then(|done| unlimited.map(|_| done))) {
            (Some(exceeded), _) => Err(exceeded),
            (None, done) => done.map_err(|error| script_error(&error, limits, &self.name)),
        }
    }

    fn limit(&self, limits: LuaLimits) -> mlua::Result<()> {
        let most = self.memory + limits.memory;
        if self.lua.used_memory() > most {
            return Err(mlua::Error::external(LuaError::OutOfMemory(limits.memory)));
        }
        self.lua.set_memory_limit(most).map(|_| ())
    }

    fn run(&self, environment: &Table, limits: LuaLimits) -> mlua::Result<()> {
        self.budget.begin(&self.lua, limits)?;
        self.script.set_environment(environment.clone())?;
        self.script.call::<()>(())
    }

    /// Has each line told that runs in the next call, beside what it may take.
    pub(super) fn trace(&self, on_line: impl Fn(usize, usize) + Send + 'static) -> mlua::Result<()> {
        let budget = self.budget.clone();
        let triggers = HookTriggers::new().every_line();
        self.lua.set_hook(triggers, move |lua, debug| {
            on_line(debug.current_line().unwrap_or(0), lua.used_memory());
            // Coarse: what a line takes is not known.
            budget.spend(1).map_err(mlua::Error::external)?;
            Ok(VmState::Continue)
        })
    }

    /// Frees what calls have left. Whether the state can be used again.
    pub(super) fn clean(&self) -> bool {
        if self.lua.used_memory() < self.memory + KEPT {
            return true;
        }
        self.lua.gc_collect().is_ok() && self.lua.used_memory() < self.memory + KEPT
    }

    fn environment(&self) -> mlua::Result<Table> {
        let environment = self.lua.create_table()?;
        environment.raw_set("_G", &environment)?;
        let metatable = self.lua.create_table()?;
        metatable.raw_set("__index", &self.base)?;
        environment.set_metatable(Some(metatable))?;
        Ok(environment)
    }
}

fn base(lua: &Lua, budget: &Budget) -> mlua::Result<Table> {
    let globals = lua.globals();
    let base = lua.create_table()?;
    for name in BASE {
        base.raw_set(name, globals.raw_get::<Function>(name)?)?;
    }
    for name in MISSING {
        let missing = move |lua: &Lua, _: Variadic<LuaValue>| -> mlua::Result<()> {
            Err(raise(lua, &format!("{name} is not available")))
        };
        base.raw_set(name, lua.create_function(missing)?)?;
    }
    let xpcall = lua.load(XPCALL).set_name("=xpcall");
    let xpcall: Function = xpcall.call(globals.raw_get::<Function>("pcall")?)?;
    base.raw_set("xpcall", xpcall)?;
    base.raw_set("print", lua.create_function(|_, _: Variadic<LuaValue>| Ok(()))?)?;
    base.raw_set("_VERSION", "Lua 5.1")?;
    let strings = strings::library(lua, budget)?;
    let metatable = lua.create_table()?;
    metatable.raw_set("__index", &strings)?;
    lua.set_type_metatable::<LuaString>(Some(metatable));
    let time = lua.create_table()?;
    let os: Table = globals.raw_get("os")?;
    for name in TIME {
        time.raw_set(name, os.raw_get::<Function>(name)?)?;
    }
    base.raw_set("string", read_only(lua, strings)?)?;
    base.raw_set("table", read_only(lua, globals.raw_get("table")?)?)?;
    base.raw_set("math", read_only(lua, globals.raw_get("math")?)?)?;
    base.raw_set("os", read_only(lua, time)?)?;
    let kube = read_only(lua, kube_library::library(lua)?)?;
    let require = move |lua: &Lua, name: String| match name.as_str() {
        "kube" => Ok(kube.clone()),
        name => Err(raise(lua, &format!("module {name} not found"))),
    };
    base.raw_set("require", lua.create_function(require)?)?;
    Ok(base)
}

/// What shows a table, and lets nobody change it.
fn read_only(lua: &Lua, table: Table) -> mlua::Result<Table> {
    let metatable = lua.create_table()?;
    metatable.raw_set("__index", table)?;
    let refuse = |lua: &Lua, _: Variadic<LuaValue>| -> mlua::Result<()> {
        Err(raise(lua, "a library cannot be changed"))
    };
    metatable.raw_set("__newindex", lua.create_function(refuse)?)?;
    let shown = lua.create_table()?;
    shown.set_metatable(Some(metatable))?;
    Ok(shown)
}

/// An error with the place in the script that called.
pub(super) fn raise(lua: &Lua, problem: &str) -> mlua::Error {
    let place = lua.inspect_stack(1, |debug| {
        let name = debug.source().short_src?.into_owned();
        Some(format!("{name}:{}: ", debug.current_line()?))
    });
    mlua::Error::runtime(format!("{}{problem}", place.flatten().unwrap_or_default()))
}

fn script_error(error: &mlua::Error, limits: LuaLimits, name: &str) -> LuaError {
    match error {
        mlua::Error::MemoryError(_) => LuaError::OutOfMemory(limits.memory),
        mlua::Error::CallbackError { cause, .. } => script_error(cause, limits, name),
        mlua::Error::WithContext { cause, .. } => script_error(cause, limits, name),
        error => match error.downcast_ref::<LuaError>() {
            Some(error) => error.clone(),
            None => LuaError::Script(message(error, name)),
        },
    }
}

/// What is wrong, without the stack, which says nothing to people.
fn message(error: &mlua::Error, name: &str) -> String {
    let text = match error {
        mlua::Error::RuntimeError(text) | mlua::Error::SyntaxError { message: text, .. } => text.clone(),
        error => error.to_string(),
    };
    let text = text.split("\nstack traceback:").next().unwrap_or_default();
    let text = text.strip_prefix("runtime error: ").unwrap_or(text);
    match text.strip_prefix(CHUNK).filter(|rest| rest.starts_with(':')) {
        Some(rest) => format!("{name}{rest}"),
        None => text.to_owned(),
    }
}

// === impl LuaError ===

impl LuaError {
    /// Whether a state may be spoiled in which it happened.
    pub(super) fn is_final(&self) -> bool {
        matches!(
            self,
            Self::TooSlow(_) | Self::TooMuch(_) | Self::OutOfMemory(_) | Self::Start(_)
        )
    }
}
