//! Lists whose items are known by some of their fields.

use std::collections::HashMap;

use serde_json::Value;

/// Sets items that are there already, and adds the others behind.
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

/// Takes items away.
pub(super) fn without(current: &[Value], given: &[Value], identity: fn(&Value) -> Value) -> Vec<Value> {
    let given: std::collections::HashSet<_> = given.iter().map(identity).collect();
    let stays = |item: &&Value| !given.contains(&identity(item));
    current.iter().filter(stays).cloned().collect()
}

/// What tells a toleration from others: all but its seconds.
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

/// What tells a topology spread constraint from others.
pub(super) fn spread_constraint(item: &Value) -> Value {
    let field = |name: &str| item.get(name).cloned().unwrap_or_default();
    [field("topologyKey"), field("whenUnsatisfiable")]
        .into_iter()
        .collect()
}
