//! Converts JSON to Lua values.

use mlua::{Lua, Value as LuaValue};
use serde_json::Value;

/// Converts a value. Numbers become floats; fields and items that are `null` are dropped.
///
/// # Errors
///
/// When the state is out of memory.
pub(super) fn to_lua(lua: &Lua, value: &Value) -> mlua::Result<LuaValue> {
    Ok(match value {
        Value::Null => LuaValue::Nil,
        Value::Bool(value) => LuaValue::Boolean(*value),
        Value::Number(number) => LuaValue::Number(number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => LuaValue::String(lua.create_string(text)?),
        Value::Array(items) => {
            let table = lua.create_table_with_capacity(items.len(), 0)?;
            let items = items.iter().filter(|item| !item.is_null());
            for item in items {
                table.raw_push(to_lua(lua, item)?)?;
            }
            LuaValue::Table(table)
        }
        Value::Object(fields) => {
            let table = lua.create_table_with_capacity(0, fields.len())?;
            for (name, field) in fields.iter().filter(|(_, field)| !field.is_null()) {
                table.raw_set(name.as_str(), to_lua(lua, field)?)?;
            }
            LuaValue::Table(table)
        }
    })
}
