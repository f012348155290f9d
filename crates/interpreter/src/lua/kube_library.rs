//! The library `require("kube")` of Karmada (`LUA/kube.go`).

use mlua::{Lua, Table, Value as LuaValue, Variadic};
use serde_json::{Value, json};

use super::{
    arguments::{Arguments, LONGEST, raise},
    budget::Budget,
    from_lua::from_lua,
    to_lua::to_lua,
};
use crate::{pod, quantity::Quantity};

/// The longest namespace, in bytes: it is copied for each dependency.
const LONGEST_NAME: usize = 253;

/// The approximate memory of a dependency as JSON, without its name.
const DEPENDENCY: usize = 5 * size_of::<(String, Value)>();

type Called = fn(&Budget, &Arguments<'_>) -> mlua::Result<LuaValue>;

/// Creates the `kube` library.
pub(super) fn library(lua: &Lua, budget: &Budget) -> mlua::Result<Table> {
    let library = lua.create_table()?;
    let functions: [(&'static str, Called); 4] = [
        ("resourceAdd", resource_add),
        ("getResourceQuantity", get_resource_quantity),
        ("accuratePodRequirements", accurate_pod_requirements),
        ("getPodDependencies", get_pod_dependencies),
    ];
    for (function, called) in functions {
        let budget = budget.clone();
        let called = move |lua: &Lua, values: Variadic<LuaValue>| {
            called(
                &budget,
                &Arguments {
                    lua,
                    function,
                    values,
                },
            )
        };
        library.raw_set(function, lua.create_function(called)?)?;
    }
    Ok(library)
}

/// Adds quantities; the result has the format of the first one that is not zero.
fn resource_add(_: &Budget, arguments: &Arguments<'_>) -> mlua::Result<LuaValue> {
    let mut sum = Quantity::default();
    for place in 1..=arguments.values.len() {
        sum += quantity(arguments, place)?;
    }
    let sum = arguments.lua.create_string(sum.to_string())?;
    Ok(LuaValue::String(sum))
}

/// Converts a quantity to a number.
fn get_resource_quantity(_: &Budget, arguments: &Arguments<'_>) -> mlua::Result<LuaValue> {
    let amount = quantity(arguments, 1)?;
    match amount < Quantity::default() {
        true => Err(raise(arguments.lua, "quantity cannot be negative")),
        false => Ok(LuaValue::Number(amount.to_f64())),
    }
}

/// Returns the requirements of the pods of a template, or `nil`.
fn accurate_pod_requirements(budget: &Budget, arguments: &Arguments<'_>) -> mlua::Result<LuaValue> {
    let template = template(budget, arguments)?;
    match pod::requirements(&template) {
        Ok(Some(needed)) => to_lua(arguments.lua, &json!(needed)),
        Ok(None) => Ok(LuaValue::Nil),
        Err(error) => Err(raise(arguments.lua, &error.to_string())),
    }
}

/// Returns the dependencies of the pods of a template in a namespace, which defaults to `default`. Without
/// dependencies, Karmada's function returns `nil`, so that scripts which return its result fail.
fn get_pod_dependencies(budget: &Budget, arguments: &Arguments<'_>) -> mlua::Result<LuaValue> {
    let template = template(budget, arguments)?;
    let namespace = match arguments.value(2) {
        LuaValue::Nil => "default".to_owned(),
        _ => arguments.short_text(2, LONGEST_NAME)?.to_string_lossy(),
    };
    let dependencies = pod::dependencies(&template, Some(&namespace));
    budget.allow(arguments.lua, DEPENDENCY * dependencies.len())?;
    to_lua(arguments.lua, &json!(dependencies))
}

/// Returns a quantity; `nil` is zero. In JSON, quantities may be numbers.
fn quantity(arguments: &Arguments<'_>, place: usize) -> mlua::Result<Quantity> {
    if arguments.value(place).is_nil() {
        return Ok(Quantity::default());
    }
    let text = arguments.short_text(place, LONGEST)?;
    let quantity = Quantity::parse(&text.to_string_lossy());
    quantity.map_err(|error| raise(arguments.lua, &error.to_string()))
}

fn template(budget: &Budget, arguments: &Arguments<'_>) -> mlua::Result<Value> {
    let table = arguments.table(1)?;
    // A small table may be large as JSON.
    budget.spend(arguments.lua, 1)?;
    let left = budget.memory().saturating_sub(arguments.lua.used_memory());
    let template = from_lua(&LuaValue::Table(table), left);
    template.map_err(|problem| arguments.bad_argument(1, &problem))
}
