//! The library `string`, with functions that end for texts of any length.

use memchr::memmem;
use mlua::{Function, Lua, LuaString, MultiValue, Table, Value as LuaValue, Variadic};

use super::{
    arguments::{Arguments, LONGEST, raise},
    budget::Budget,
    number_text::number_text,
    pattern::{self, Capture, Match, PatternError},
};

/// Functions of the C library that only need a limit on the length of strings.
const BOUNDED: [&str; 7] = ["byte", "char", "len", "lower", "reverse", "sub", "upper"];

/// Creates the library from the one of `lua`.
pub(super) fn library(lua: &Lua, budget: &Budget) -> mlua::Result<Table> {
    let plain: Table = lua.globals().raw_get("string")?;
    let library = lua.create_table()?;
    for name in BOUNDED {
        let function: Function = plain.raw_get(name)?;
        library.raw_set(name, bounded(lua, name, function, |_, _| Ok(()))?)?;
    }
    let tostring: Function = lua.globals().raw_get("tostring")?;
    let to_text = move |lua: &Lua, values: &mut [LuaValue]| texts_of_values(lua, &tostring, values);
    library.raw_set(
        "format",
        bounded(lua, "format", plain.raw_get("format")?, to_text)?,
    )?;
    let searching: [(&'static str, Searching); 4] = [
        ("find", find),
        ("match", first),
        ("gmatch", find_all),
        // The name in Lua 5.0.
        ("gfind", find_all),
    ];
    for (function, search) in searching {
        let budget = budget.clone();
        let search = move |lua: &Lua, values: Variadic<LuaValue>| {
            search(
                &budget,
                &Arguments {
                    lua,
                    function,
                    values,
                },
            )
        };
        library.raw_set(function, lua.create_function(search)?)?;
    }
    Ok(library)
}

type Searching = fn(&Budget, &Arguments<'_>) -> mlua::Result<MultiValue>;

/// Wraps a function to limit the length of strings; `prepare` gets its arguments first.
fn bounded(
    lua: &Lua,
    name: &'static str,
    function: Function,
    prepare: impl Fn(&Lua, &mut [LuaValue]) -> mlua::Result<()> + Send + 'static,
) -> mlua::Result<Function> {
    lua.create_function(move |lua, values: Variadic<LuaValue>| {
        let arguments = Arguments {
            lua,
            function: name,
            values,
        };
        for (index, value) in arguments.values.iter().enumerate() {
            if let LuaValue::String(text) = value {
                arguments.check_length(index + 1, text, LONGEST)?;
            }
        }
        let mut values = arguments.values;
        prepare(lua, &mut values)?;
        function.call::<MultiValue>(values).map_err(|error| match error {
            // C reports neither the position nor the name, because the script did not call it directly.
            mlua::Error::RuntimeError(text) => {
                let text = text.split("\nstack traceback:").next().unwrap_or_default();
                raise(lua, &text.replace("to '?'", &format!("to '{name}'")))
            }
            error => error,
        })
    })
}

/// Converts the values for `%s` in a format to strings, as Karmada does; C rejects `nil`.
fn texts_of_values(lua: &Lua, tostring: &Function, values: &mut [LuaValue]) -> mlua::Result<()> {
    let Some((LuaValue::String(format), values)) = values.split_first_mut() else {
        return Ok(());
    };
    let is_text: Vec<bool> = conversions(&format.as_bytes())
        .map(|conversion| conversion == b's')
        .collect();
    let texts = values.iter_mut().zip(is_text).filter(|(_, is_text)| *is_text);
    for (value, _) in texts {
        *value = match &*value {
            LuaValue::String(_) => continue,
            LuaValue::Number(number) => LuaValue::String(lua.create_string(number_text(*number))?),
            LuaValue::Integer(number) => LuaValue::String(lua.create_string(number.to_string())?),
            other => tostring.call(other)?,
        };
    }
    Ok(())
}

/// Returns the letter of each conversion in a format except `%%`.
fn conversions(format: &[u8]) -> impl Iterator<Item = u8> {
    let mut rest = format.iter().copied();
    std::iter::from_fn(move || {
        loop {
            rest.find(|byte| *byte == b'%')?;
            let is_amount = |byte: &u8| byte.is_ascii_digit() || b"-+ #.".contains(byte);
            match rest.find(|byte| !is_amount(byte))? {
                b'%' => {}
                letter => return Some(letter),
            }
        }
    })
}

/// Returns a text and the pattern to search for.
fn text_and_pattern(arguments: &Arguments<'_>) -> mlua::Result<(LuaString, LuaString)> {
    Ok((
        arguments.short_text(1, LONGEST)?,
        arguments.short_text(2, LONGEST)?,
    ))
}

fn find(budget: &Budget, arguments: &Arguments<'_>) -> mlua::Result<MultiValue> {
    let (text, pattern) = text_and_pattern(arguments)?;
    let start = start_of(arguments.optional_number(3)?, text.as_bytes().len());
    let is_plain = !matches!(arguments.value(4), LuaValue::Nil | LuaValue::Boolean(false));
    if is_plain || pattern::is_plain(&pattern.as_bytes()) {
        let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
        budget.spend(arguments.lua, (text.len() / 64) as u64)?;
        let found = memmem::find(&text[start..], &pattern);
        return Ok(found.map_or_else(nil, |found| {
            positions(start + found, start + found + pattern.len())
        }));
    }
    let Some(found) = search_pattern(budget, arguments, &text, &pattern, start, true)? else {
        return Ok(nil());
    };
    let mut values = positions(found.start, found.end);
    if !found.captures.is_empty() {
        values.extend(parts(arguments.lua, &text, &found)?);
    }
    Ok(values)
}

fn first(budget: &Budget, arguments: &Arguments<'_>) -> mlua::Result<MultiValue> {
    let (text, pattern) = text_and_pattern(arguments)?;
    let start = start_of(arguments.optional_number(3)?, text.as_bytes().len());
    match search_pattern(budget, arguments, &text, &pattern, start, true)? {
        Some(found) => parts(arguments.lua, &text, &found),
        None => Ok(nil()),
    }
}

/// Returns an iterator over all matches.
fn find_all(budget: &Budget, arguments: &Arguments<'_>) -> mlua::Result<MultiValue> {
    let (text, pattern) = text_and_pattern(arguments)?;
    let budget = budget.clone();
    let mut next = Some(0);
    let iterator = arguments.lua.create_function_mut(move |lua, ()| {
        let Some(start) = next.take() else {
            return Ok(nil());
        };
        let (function, values) = ("gmatch", Variadic::new());
        let arguments = Arguments {
            lua,
            function,
            values,
        };
        let Some(found) = search_pattern(&budget, &arguments, &text, &pattern, start, false)? else {
            return Ok(nil());
        };
        // Skips a second empty match at the same position.
        let end = found.end + usize::from(found.end == found.start);
        next = (end <= text.as_bytes().len()).then_some(end);
        parts(lua, &text, &found)
    })?;
    Ok(MultiValue::from_iter([LuaValue::Function(iterator)]))
}

/// Searches a pattern. `is_anchored`: whether a leading `^` matches only at the start.
fn search_pattern(
    budget: &Budget,
    arguments: &Arguments<'_>,
    text: &LuaString,
    pattern: &LuaString,
    start: usize,
    is_anchored: bool,
) -> mlua::Result<Option<Match>> {
    let lua = arguments.lua;
    let spend = |steps| budget.spend(lua, steps);
    let found = pattern::search(&text.as_bytes(), &pattern.as_bytes(), start, is_anchored, &spend);
    found.map_err(|error| match error {
        PatternError::Malformed(problem) => raise(lua, problem),
        PatternError::Stopped(error) => error,
    })
}

/// Returns the captures of a match, or the whole match if there are none.
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

/// Returns where a search begins: counted from 1, or from the end if negative.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number is clamped"
)]
fn start_of(init: Option<f64>, length: usize) -> usize {
    let init = init.unwrap_or(1.0);
    let start = match init < 0.0 {
        true => length as f64 + init,
        false => init - 1.0,
    };
    start.clamp(0.0, length as f64) as usize
}

/// Returns the first and last position of a match, from 1.
fn positions(start: usize, end: usize) -> MultiValue {
    [start + 1, end]
        .map(|place| LuaValue::Number(place as f64))
        .into_iter()
        .collect()
}

fn nil() -> MultiValue {
    MultiValue::from_iter([LuaValue::Nil])
}
