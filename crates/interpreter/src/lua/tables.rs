//! `table.concat` with a size limit, which the function of the C library does not have.

use mlua::{Function, Lua, LuaString, Value as LuaValue, Variadic};

use super::{
    arguments::{Arguments, raise, type_name},
    budget::Budget,
    number_text::number_text,
};

/// The number of items between two budget checks.
const PERIOD: u32 = 256;

/// 2^53: the first number that may equal its successor.
const MOST: f64 = 9_007_199_254_740_992.0;

/// Creates the function, which uses the budget of the call.
pub(super) fn concat(lua: &Lua, budget: &Budget) -> mlua::Result<Function> {
    let budget = budget.clone();
    lua.create_function(move |lua, values: Variadic<LuaValue>| {
        let function = "concat";
        join(
            &budget,
            &Arguments {
                lua,
                function,
                values,
            },
        )
    })
}

fn join(budget: &Budget, arguments: &Arguments<'_>) -> mlua::Result<LuaString> {
    let lua = arguments.lua;
    let list = arguments.table(1)?;
    let separator = match arguments.value(2) {
        LuaValue::Nil => lua.create_string("")?,
        _ => arguments.text(2)?,
    };
    let mut index = arguments.optional_number(3)?.unwrap_or(1.0).trunc();
    if index.abs() >= MOST {
        return Err(arguments.bad_argument(3, "out of range"));
    }
    let last = arguments.optional_number(4)?;
    let last = last.map_or_else(|| list.raw_len() as f64, f64::trunc);
    let mut text = Vec::new();
    let mut count: u32 = 0;
    while index <= last {
        let item: LuaValue = list.raw_get(index)?;
        let found = type_name(&item);
        let item = match item {
            LuaValue::String(text) => Some(text),
            LuaValue::Number(number) => Some(lua.create_string(number_text(number))?),
            LuaValue::Integer(number) => Some(lua.create_string(number.to_string())?),
            _ => None,
        };
        let Some(item) = item else {
            let problem = format!("invalid value ({found}) at index {index} in table for 'concat'");
            return Err(raise(lua, &problem));
        };
        let separator = separator.as_bytes();
        budget.allow(lua, text.len() + item.as_bytes().len() + separator.len())?;
        text.extend_from_slice(&item.as_bytes());
        if index < last {
            text.extend_from_slice(&separator);
        }
        count += 1;
        if count.is_multiple_of(PERIOD) {
            budget.spend(lua, PERIOD.into())?;
        }
        index += 1.0;
    }
    budget.spend(lua, u64::from(count % PERIOD))?;
    lua.create_string(text)
}
