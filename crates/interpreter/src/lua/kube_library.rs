//! `require("kube")`: what Karmada gives to scripts (`LUA/kube.go`).

use mlua::{FromLua, Lua, Table, Value as LuaValue, Variadic};
use serde_json::{Value, json};

use super::{from_lua::from_lua, lua_state::raise, to_lua::to_lua};
use crate::{pod, quantity::Quantity};

/// The library.
pub(super) fn library(lua: &Lua) -> mlua::Result<Table> {
    let library = lua.create_table()?;
    library.raw_set("resourceAdd", lua.create_function(resource_add)?)?;
    library.raw_set(
        "accuratePodRequirements",
        lua.create_function(accurate_pod_requirements)?,
    )?;
    library.raw_set("getPodDependencies", lua.create_function(get_pod_dependencies)?)?;
    library.raw_set("getResourceQuantity", lua.create_function(get_resource_quantity)?)?;
    Ok(library)
}

/// The sum of quantities, in the format of the first that is something.
fn resource_add(lua: &Lua, amounts: Variadic<LuaValue>) -> mlua::Result<String> {
    let mut sum = Quantity::default();
    for amount in amounts.iter() {
        sum += quantity(lua, amount)?;
    }
    Ok(sum.to_string())
}

/// What pods of a template need; `nil` where that is nothing.
fn accurate_pod_requirements(lua: &Lua, template: LuaValue) -> mlua::Result<LuaValue> {
    let template = json(lua, &template, "accuratePodRequirements")?;
    match pod::requirements(&template) {
        Ok(Some(needed)) => to_lua(lua, &json!(needed)),
        Ok(None) => Ok(LuaValue::Nil),
        Err(error) => Err(raise(lua, &error.to_string())),
    }
}

/// The objects that pods of a template need, in a namespace, which is `default` where it is `nil`.
fn get_pod_dependencies(
    lua: &Lua,
    (template, namespace): (LuaValue, Option<String>),
) -> mlua::Result<LuaValue> {
    let template = json(lua, &template, "getPodDependencies")?;
    let namespace = namespace.as_deref().unwrap_or("default");
    to_lua(lua, &json!(pod::dependencies(&template, Some(namespace))))
}

/// A quantity as a number.
fn get_resource_quantity(lua: &Lua, amount: LuaValue) -> mlua::Result<f64> {
    let amount = quantity(lua, &amount)?;
    match amount < Quantity::default() {
        true => Err(raise(lua, "quantity cannot be negative")),
        false => Ok(amount.to_f64()),
    }
}

fn quantity(lua: &Lua, value: &LuaValue) -> mlua::Result<Quantity> {
    if value.is_nil() {
        return Ok(Quantity::default());
    }
    let text = String::from_lua(value.clone(), lua);
    let text = text.map_err(|_| raise(lua, &format!("{} is not a quantity", value.type_name())))?;
    Quantity::parse(&text).map_err(|error| raise(lua, &error.to_string()))
}

fn json(lua: &Lua, value: &LuaValue, function: &str) -> mlua::Result<Value> {
    from_lua(value).map_err(|problem| raise(lua, &format!("kube.{function}: {problem}")))
}
