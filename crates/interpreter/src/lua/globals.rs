//! The globals of scripts.

use mlua::{Function, Lua, LuaString, Table};

use super::{
    arguments::raise, budget::Budget, clock, kube_library, number_text::number_text, strings, tables,
};

/// Lua source that creates the environment of each call.
const SANDBOX: &str = include_str!("sandbox.lua");

/// The chunk name of that source, which appears in positions.
pub(super) const SANDBOX_NAME: &str = "[sandbox]";

/// Base functions that scripts may use unchanged. The others load code or bypass metatables.
const SHARED: [&str; 9] = [
    "assert", "error", "ipairs", "next", "pairs", "select", "tonumber", "tostring", "type",
];

/// Functions that fail with a message because they are not available.
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

/// Functions that only the sandbox calls.
const HIDDEN: [&str; 4] = ["getmetatable", "pcall", "setmetatable", "unpack"];

/// Prepares a new state; returns the function that creates an environment, and the one that calls functions
/// of scripts.
pub(super) fn prepare(lua: &Lua, budget: &Budget) -> mlua::Result<(Function, Function)> {
    let globals = lua.globals();
    let native = lua.create_table()?;
    for name in SHARED.into_iter().chain(HIDDEN) {
        native.raw_set(name, globals.raw_get::<Function>(name)?)?;
    }
    for name in ["math", "table"] {
        native.raw_set(name, globals.raw_get::<Table>(name)?)?;
    }
    let plain: Table = globals.raw_get("string")?;
    native.raw_set("format", plain.raw_get::<Function>("format")?)?;
    native.raw_set("string", strings::library(lua, budget)?)?;
    native.raw_set("concat", tables::concat(lua, budget)?)?;
    native.raw_set("os", clock::library(lua)?)?;
    native.raw_set("kube", kube_library::library(lua, budget)?)?;
    native.raw_set("caught", budget.clone().caught_function(lua)?)?;
    let raise = |lua: &Lua, problem: LuaString| Err::<(), _>(raise(lua, &problem.to_string_lossy()));
    native.raw_set("raise", lua.create_function(raise)?)?;
    let shared = SHARED.into_iter().chain(["unpack"]);
    native.raw_set("shared", lua.create_sequence_from(shared)?)?;
    let text = |lua: &Lua, number: f64| lua.create_string(number_text(number));
    native.raw_set("number_text", lua.create_function(text)?)?;
    native.raw_set("missing", lua.create_sequence_from(MISSING)?)?;
    let sandbox = lua.load(SANDBOX).set_name(format!("={SANDBOX_NAME}"));
    sandbox.call(native)
}

/// Removes a position in the sandbox from a message, because users do not know the sandbox.
pub(super) fn without_place(text: &[u8]) -> &[u8] {
    let placed = text
        .strip_prefix(SANDBOX_NAME.as_bytes())
        .and_then(|rest| rest.strip_prefix(b":"));
    let line = placed.map_or(0, |rest| {
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    });
    let rest = placed.and_then(|rest| rest[line..].strip_prefix(b": "));
    rest.unwrap_or(text)
}
