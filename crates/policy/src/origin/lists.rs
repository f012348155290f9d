//! Lists whose items are identified by some of their fields.

use std::collections::HashMap;

use serde_json::Value;

/// Replaces items of the same identity, and appends the others.
pub(super) fn merged(current: &[Value], given: Vec<Value>, identity: fn(&Value) -> Value) -> Vec<Value> {
    let mut list = current.to_vec();
    let mut places: HashMap<Value, usize> = HashMap::new();
    for (place, item) in list.iter().enumerate() {
        places.entry(identity(item)).or_insert(place);
    }
    for item in given {
        let place = *places.entry(identity(&item)).or_insert(list.len());
        match list.get_mut(place) {
            Some(known) => *known = item,
            None => list.push(item),
        }
    }
    list
}

/// Removes items of the same identity.
pub(super) fn without(current: &[Value], given: &[Value], identity: fn(&Value) -> Value) -> Vec<Value> {
    let given: std::collections::HashSet<_> = given.iter().map(identity).collect();
    let stays = |item: &&Value| !given.contains(&identity(item));
    current.iter().filter(stays).cloned().collect()
}

/// The identity of a toleration: all fields but its seconds.
pub(super) fn toleration(item: &Value) -> Value {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    let operator = match text("operator") {
        "" => "Equal",
        operator => operator,
    };
    [text("key"), operator, text("value"), text("effect")]
        .into_iter()
        .collect()
}

/// The identity of a topology spread constraint.
pub(super) fn spread_constraint(item: &Value) -> Value {
    let field = |name: &str| item.get(name).cloned().unwrap_or_default();
    [field("topologyKey"), field("whenUnsatisfiable")]
        .into_iter()
        .collect()
}
