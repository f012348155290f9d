//! `table.concat`: that of C makes texts of numbers without end.

use mlua::{Function, Lua, LuaString, Value as LuaValue, Variadic};

use super::{
    arguments::{Arguments, raise, type_name},
    budget::Budget,
};

/// How many items are joined between two looks at the budget.
const PERIOD: u32 = 256;

/// The function, which spends from the budget of the call.
pub(super) fn concat(lua: &Lua, budget: &Budget) -> mlua::Result<Function> {
    let budget = budget.clone();
    lua.create_function(move |lua, values: Variadic<LuaValue>| {
        let function = "concat";
        joined(
            &budget,
            &Arguments {
                lua,
                function,
                values,
            },
        )
    })
}

fn joined(budget: &Budget, arguments: &Arguments<'_>) -> mlua::Result<LuaString> {
    let lua = arguments.lua;
    let list = arguments.table(1)?;
    let separator = match arguments.value(2) {
        LuaValue::Nil => lua.create_string("")?,
        _ => arguments.text(2)?,
    };
    let mut index = arguments.optional_number(3)?.unwrap_or(1.0).trunc();
    let last = arguments.optional_number(4)?;
    let last = last.map_or_else(|| list.raw_len() as f64, f64::trunc);
    let mut text = Vec::new();
    let mut count: u32 = 0;
    while index <= last {
        let item = list.raw_get(index)?;
        match &item {
            LuaValue::String(item) => text.extend_from_slice(&item.as_bytes()),
            LuaValue::Integer(_) | LuaValue::Number(_) => {
                let item = lua.coerce_string(item)?;
                text.extend(item.iter().flat_map(|item| item.as_bytes().to_vec()));
            }
            other => {
                let problem = format!(
                    "invalid value ({}) at index {index} in table for 'concat'",
                    type_name(other)
                );
                return Err(raise(lua, &problem));
            }
        }
        if index < last {
            text.extend_from_slice(&separator.as_bytes());
        }
        count += 1;
        if count.is_multiple_of(PERIOD) {
            budget.spend(lua, PERIOD.into())?;
        }
        budget.allow(lua, text.len())?;
        index += 1.0;
    }
    budget.spend(lua, u64::from(count % PERIOD))?;
    lua.create_string(text)
}
