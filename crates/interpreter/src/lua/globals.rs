//! What the environment of a script holds, and what it does not.

use mlua::{Function, Lua, LuaString, Table};

use super::{
    arguments::raise, budget::Budget, clock, kube_library, number_text::number_text, strings, tables,
};

/// What makes the environment of each call, in Lua.
const SANDBOX: &str = include_str!("sandbox.lua");

/// What the places in it are called.
pub(super) const SANDBOX_NAME: &str = "[sandbox]";

/// Base functions that a script may have as they are: the rest loads code, or reaches behind tables.
const SHARED: [&str; 9] = [
    "assert", "error", "ipairs", "next", "pairs", "select", "tonumber", "tostring", "type",
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

/// What only the sandbox itself calls.
const HIDDEN: [&str; 4] = ["getmetatable", "pcall", "setmetatable", "unpack"];

/// Prepares a new state; returns the function that makes an environment, and the one that calls those of a script.
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

/// A text that Lua has placed in the sandbox, of which people know nothing, without that place.
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
