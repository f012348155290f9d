//! What a script calls a function with, and how it is told what is wrong with that.

use mlua::{Lua, LuaString, Table, Value as LuaValue, Variadic};

use super::globals::SANDBOX_NAME;

/// The arguments of a function, by their place from 1.
pub(super) struct Arguments<'a> {
    pub(super) lua: &'a Lua,
    pub(super) function: &'static str,
    pub(super) values: Variadic<LuaValue>,
}

/// The longest text that a function takes, in bytes, as Karmada has it.
pub(super) const LONGEST: usize = 1_000_000;

/// How many functions up a place in the script is looked for.
const LEVELS: usize = 16;

// === impl Arguments ===

impl Arguments<'_> {
    /// `nil` where there is none.
    pub(super) fn value(&self, place: usize) -> LuaValue {
        self.values.get(place - 1).cloned().unwrap_or(LuaValue::Nil)
    }

    /// A string, or a number as one.
    pub(super) fn text(&self, place: usize) -> mlua::Result<LuaString> {
        match self.value(place) {
            LuaValue::String(text) => Ok(text),
            value @ (LuaValue::Integer(_) | LuaValue::Number(_)) => {
                let text = self.lua.coerce_string(value)?;
                text.ok_or_else(|| self.expected(place, "string"))
            }
            _ => Err(self.expected(place, "string")),
        }
    }

    /// A string, or a number as one, of some bytes at most.
    pub(super) fn short_text(&self, place: usize, longest: usize) -> mlua::Result<LuaString> {
        let text = self.text(place)?;
        self.check_length(place, &text, longest)?;
        Ok(text)
    }

    /// A text is one of some bytes at most.
    pub(super) fn check_length(&self, place: usize, text: &LuaString, longest: usize) -> mlua::Result<()> {
        match text.as_bytes().len() > longest {
            true => Err(self.bad(place, &format!("longer than {longest} bytes"))),
            false => Ok(()),
        }
    }

    /// A number, or a string that is written as one.
    pub(super) fn optional_number(&self, place: usize) -> mlua::Result<Option<f64>> {
        let value = self.value(place);
        if value.is_nil() {
            return Ok(None);
        }
        let number = self.lua.coerce_number(value)?;
        number.map(Some).ok_or_else(|| self.expected(place, "number"))
    }

    /// A table.
    pub(super) fn table(&self, place: usize) -> mlua::Result<Table> {
        match self.value(place) {
            LuaValue::Table(table) => Ok(table),
            _ => Err(self.expected(place, "table")),
        }
    }

    /// An argument is of another type.
    pub(super) fn expected(&self, place: usize, expected: &str) -> mlua::Error {
        let got = match self.values.get(place - 1) {
            None => "no value",
            Some(value) => type_name(value),
        };
        self.bad(place, &format!("{expected} expected, got {got}"))
    }

    /// An argument is not one for the function.
    pub(super) fn bad(&self, place: usize, problem: &str) -> mlua::Error {
        let function = self.function;
        raise(
            self.lua,
            &format!("bad argument #{place} to '{function}' ({problem})"),
        )
    }
}

/// What Lua calls the type of a value.
pub(super) fn type_name(value: &LuaValue) -> &'static str {
    match value {
        // Which are no types of their own.
        LuaValue::Integer(_) => "number",
        LuaValue::Error(_) => "userdata",
        value => value.type_name(),
    }
}

/// An error at the place in the script that called.
pub(super) fn raise(lua: &Lua, problem: &str) -> mlua::Error {
    match place(lua) {
        Some(place) => mlua::Error::runtime(format!("{place}: {problem}")),
        None => mlua::Error::runtime(problem),
    }
}

/// The script's name and the line that it is at.
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
