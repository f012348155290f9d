//! Arguments of functions that scripts call, and errors about them.

use mlua::{Lua, LuaString, Table, Value as LuaValue, Variadic};

use super::globals::SANDBOX_NAME;

/// The arguments of a function, numbered from 1.
pub(super) struct Arguments<'a> {
    pub(super) lua: &'a Lua,
    pub(super) function: &'static str,
    pub(super) values: Variadic<LuaValue>,
}

/// The longest string argument, in bytes, as in Karmada.
pub(super) const LONGEST: usize = 1_000_000;

/// How many stack levels to search for the script's position.
const LEVELS: usize = 16;

impl Arguments<'_> {
    /// Returns an argument, or `nil`.
    pub(super) fn value(&self, place: usize) -> LuaValue {
        self.values.get(place - 1).cloned().unwrap_or(LuaValue::Nil)
    }

    /// Returns a string or number argument as a string.
    pub(super) fn text(&self, place: usize) -> mlua::Result<LuaString> {
        match self.value(place) {
            LuaValue::String(text) => Ok(text),
            value @ (LuaValue::Integer(_) | LuaValue::Number(_)) => {
                let text = self.lua.coerce_string(value)?;
                text.ok_or_else(|| self.type_error(place, "string"))
            }
            _ => Err(self.type_error(place, "string")),
        }
    }

    /// Returns a string or number argument as a string of at most `longest` bytes.
    pub(super) fn short_text(&self, place: usize, longest: usize) -> mlua::Result<LuaString> {
        let text = self.text(place)?;
        self.check_length(place, &text, longest)?;
        Ok(text)
    }

    /// Checks that a string has at most `longest` bytes.
    pub(super) fn check_length(&self, place: usize, text: &LuaString, longest: usize) -> mlua::Result<()> {
        match text.as_bytes().len() > longest {
            true => Err(self.bad_argument(place, &format!("longer than {longest} bytes"))),
            false => Ok(()),
        }
    }

    /// Returns a number argument, or a string that contains a number.
    pub(super) fn optional_number(&self, place: usize) -> mlua::Result<Option<f64>> {
        let value = self.value(place);
        if value.is_nil() {
            return Ok(None);
        }
        let number = self.lua.coerce_number(value)?;
        number.map(Some).ok_or_else(|| self.type_error(place, "number"))
    }

    pub(super) fn table(&self, place: usize) -> mlua::Result<Table> {
        match self.value(place) {
            LuaValue::Table(table) => Ok(table),
            _ => Err(self.type_error(place, "table")),
        }
    }

    /// An error for an argument of the wrong type.
    pub(super) fn type_error(&self, place: usize, expected: &str) -> mlua::Error {
        let got = match self.values.get(place - 1) {
            None => "no value",
            Some(value) => type_name(value),
        };
        self.bad_argument(place, &format!("{expected} expected, got {got}"))
    }

    /// An error for an invalid argument.
    pub(super) fn bad_argument(&self, place: usize, problem: &str) -> mlua::Error {
        let function = self.function;
        raise(
            self.lua,
            &format!("bad argument #{place} to '{function}' ({problem})"),
        )
    }
}

/// Returns Lua's name of a value's type.
pub(super) fn type_name(value: &LuaValue) -> &'static str {
    match value {
        // Lua has no separate types for these.
        LuaValue::Integer(_) => "number",
        LuaValue::Error(_) => "userdata",
        value => value.type_name(),
    }
}

/// An error at the position of the call in the script.
pub(super) fn raise(lua: &Lua, problem: &str) -> mlua::Error {
    match place(lua) {
        Some(place) => mlua::Error::runtime(format!("{place}: {problem}")),
        None => mlua::Error::runtime(problem),
    }
}

/// Returns the script's name and the current line.
pub(super) fn place(lua: &Lua) -> Option<String> {
    let at = |level| {
        let place = lua.inspect_stack(level, |debug| {
            let line = debug.current_line()?;
            let name = debug.source().short_src?;
            (name != SANDBOX_NAME).then(|| format!("{name}:{line}"))
        });
        place.flatten()
    };
    (0..LEVELS).find_map(at)
}
