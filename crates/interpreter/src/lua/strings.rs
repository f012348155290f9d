//! The library `string`: what may be called with text of any length, and ends.

use memchr::memmem;
use mlua::{Function, Lua, LuaString, MultiValue, Table, Value as LuaValue, Variadic};

use super::{
    budget::Budget,
    lua_state::raise,
    pattern::{self, Capture, Match, PatternError},
};

/// The longest text that a function takes, as Karmada has it.
const LONGEST: usize = 1_000_000;

/// Those of the C library that are as good as they are, but for the length of what they take.
const BOUNDED: [&str; 7] = ["byte", "format", "len", "lower", "reverse", "sub", "upper"];

/// Those that are not there: they make much of little.
const MISSING: [&str; 3] = ["dump", "gsub", "rep"];

/// The library, of that which `lua` was made with.
pub(super) fn library(lua: &Lua, budget: &Budget) -> mlua::Result<Table> {
    let plain: Table = lua.globals().raw_get("string")?;
    let library = lua.create_table()?;
    library.raw_set("char", plain.raw_get::<Function>("char")?)?;
    for name in BOUNDED {
        let function: Function = plain.raw_get(name)?;
        library.raw_set(name, bounded(lua, name, function)?)?;
    }
    for name in MISSING {
        let missing = move |lua: &Lua, ()| -> mlua::Result<()> {
            Err(raise(lua, &format!("string.{name} is not available")))
        };
        library.raw_set(name, lua.create_function(missing)?)?;
    }
    let of_find = budget.clone();
    let find = move |lua: &Lua, (text, pattern, init, plain): Find| {
        find(lua, &of_find, &text, &pattern, init, plain)
    };
    library.raw_set("find", lua.create_function(find)?)?;
    let of_match = budget.clone();
    let matches = move |lua: &Lua, (text, pattern, init): (LuaString, LuaString, Option<f64>)| {
        let start = start_of(init, text.as_bytes().len());
        match searched(lua, &of_match, &text, &pattern, start)? {
            Some(found) => parts(lua, &text, &found),
            None => Ok(nothing()),
        }
    };
    library.raw_set("match", lua.create_function(matches)?)?;
    let of_gmatch = budget.clone();
    let gmatch =
        move |lua: &Lua, (text, pattern): (LuaString, LuaString)| each(lua, of_gmatch.clone(), text, pattern);
    library.raw_set("gmatch", lua.create_function(gmatch)?)?;
    Ok(library)
}

type Find = (LuaString, LuaString, Option<f64>, Option<LuaValue>);

/// A function that takes text up to the longest.
fn bounded(lua: &Lua, name: &'static str, function: Function) -> mlua::Result<Function> {
    lua.create_function(move |lua, arguments: Variadic<LuaValue>| {
        let too_long =
            |value: &LuaValue| matches!(value, LuaValue::String(text) if text.as_bytes().len() > LONGEST);
        match arguments.iter().any(too_long) {
            true => Err(too_long_for(lua, name)),
            false => function.call::<MultiValue>(arguments),
        }
    })
}

fn too_long_for(lua: &Lua, name: &str) -> mlua::Error {
    raise(
        lua,
        &format!("string.{name}: a string is longer than {LONGEST} bytes"),
    )
}

fn find(
    lua: &Lua,
    budget: &Budget,
    text: &LuaString,
    pattern: &LuaString,
    init: Option<f64>,
    plain: Option<LuaValue>,
) -> mlua::Result<MultiValue> {
    let start = start_of(init, text.as_bytes().len());
    let is_plain = plain.is_some_and(|plain| !matches!(plain, LuaValue::Nil | LuaValue::Boolean(false)));
    if is_plain || pattern::is_plain(&pattern.as_bytes()) {
        let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
        if text.len() > LONGEST || pattern.len() > LONGEST {
            return Err(too_long_for(lua, "find"));
        }
        budget
            .spend((text.len() / 64) as u64)
            .map_err(mlua::Error::external)?;
        let found = memmem::find(&text[start..], &pattern);
        return Ok(found.map_or_else(nothing, |found| {
            let places = [start + found + 1, start + found + pattern.len()];
            places
                .map(|place| LuaValue::Number(place as f64))
                .into_iter()
                .collect()
        }));
    }
    let Some(found) = searched(lua, budget, text, pattern, start)? else {
        return Ok(nothing());
    };
    let mut values =
        MultiValue::from_iter([found.start + 1, found.end].map(|place| LuaValue::Number(place as f64)));
    if !found.captures.is_empty() {
        values.extend(parts(lua, text, &found)?);
    }
    Ok(values)
}

/// An iterator over all matches.
fn each(lua: &Lua, budget: Budget, text: LuaString, pattern: LuaString) -> mlua::Result<Function> {
    let mut next = Some(0);
    lua.create_function_mut(move |lua, _: Variadic<LuaValue>| {
        let Some(start) = next.take() else {
            return Ok(nothing());
        };
        let found = {
            let (bytes, pattern) = (text.as_bytes(), pattern.as_bytes());
            if bytes.len() > LONGEST || pattern.len() > LONGEST {
                return Err(too_long_for(lua, "gmatch"));
            }
            pattern::search(&bytes, &pattern, start, false, &budget).map_err(|error| wrong(lua, error))?
        };
        let Some(found) = found else {
            return Ok(nothing());
        };
        // An empty match is not found again.
        let end = found.end + usize::from(found.end == found.start);
        next = (end <= text.as_bytes().len()).then_some(end);
        parts(lua, &text, &found)
    })
}

fn searched(
    lua: &Lua,
    budget: &Budget,
    text: &LuaString,
    pattern: &LuaString,
    start: usize,
) -> mlua::Result<Option<Match>> {
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    if text.len() > LONGEST || pattern.len() > LONGEST {
        return Err(too_long_for(lua, "match"));
    }
    pattern::search(&text, &pattern, start, true, budget).map_err(|error| wrong(lua, error))
}

fn wrong(lua: &Lua, error: PatternError) -> mlua::Error {
    match error {
        PatternError::Malformed(problem) => raise(lua, problem),
        PatternError::Budget(error) => mlua::Error::external(error),
    }
}

/// The captures of a match, or all of it where there are none.
fn parts(lua: &Lua, text: &LuaString, found: &Match) -> mlua::Result<MultiValue> {
    let whole = [Capture::Text(found.start, found.end)];
    let captures = match found.captures.as_slice() {
        [] => &whole,
        captures => captures,
    };
    let value = |capture: &Capture| match capture {
        Capture::Text(start, end) => Ok(LuaValue::String(
            lua.create_string(&text.as_bytes()[*start..*end])?,
        )),
        Capture::Position(place) => Ok(LuaValue::Number(*place as f64)),
    };
    captures.iter().map(value).collect()
}

/// Where a search begins: from 1, or from behind where it is negative.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is clamped"
)]
fn start_of(init: Option<f64>, length: usize) -> usize {
    let init = init.unwrap_or(1.0);
    let start = match init < 0.0 {
        true => length as f64 + init,
        false => init - 1.0,
    };
    start.clamp(0.0, length as f64) as usize
}

fn nothing() -> MultiValue {
    MultiValue::from_iter([LuaValue::Nil])
}
