//! In-place changes of JSON of any shape: a value of the wrong type is replaced.

use serde_json::{Map, Value};

/// Returns the fields of the object at `path`, which is created if it does not exist.
pub fn fields<'a>(value: &'a mut Value, path: &[&str]) -> &'a mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    // Never taken: the value was made an object above.
    let Value::Object(object) = value else {
        unreachable!("it was made an object")
    };
    match path {
        [] => object,
        [first, rest @ ..] => fields(object.entry(*first).or_insert(Value::Null), rest),
    }
}

/// Returns the items of the list `name`, which is created if it does not exist.
pub fn list<'a>(fields: &'a mut Map<String, Value>, name: &str) -> &'a mut Vec<Value> {
    let value = fields.entry(name).or_insert(Value::Null);
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    let Value::Array(items) = value else {
        unreachable!("it was made a list")
    };
    items
}

/// Removes every null field: Kubernetes treats it as absent.
pub fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Removes fields that the cluster sets: the status, and the empty creation time that code generators write.
pub fn drop_live_fields(object: &mut Value) {
    let fields = fields(object, &[]);
    fields.shift_remove("status");
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, value| name != "creationTimestamp" || !value.is_null());
    }
}

/// Sets the namespace of an object, or removes it for a cluster-scoped kind.
pub fn set_namespace(object: &mut Value, namespace: Option<&str>) {
    let metadata = fields(object, &["metadata"]);
    match namespace {
        Some(namespace) => metadata.insert("namespace".into(), namespace.into()),
        None => metadata.shift_remove("namespace"),
    };
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_the_wrong_type_are_replaced() {
        let mut value = json!({"a": "text", "l": 3});
        fields(&mut value, &["a", "b"]).insert("c".into(), json!(1));
        list(fields(&mut value, &[]), "l").push(json!(2));
        assert_eq!(value, json!({"a": {"b": {"c": 1}}, "l": [2]}));
    }

    #[test]
    fn fields_set_by_the_cluster_are_removed() {
        let mut object =
            json!({"metadata": {"creationTimestamp": null, "name": "a"}, "status": {}, "spec": null});
        drop_live_fields(&mut object);
        assert_eq!(object, json!({"metadata": {"name": "a"}, "spec": null}));
        drop_nulls(&mut object);
        assert_eq!(object, json!({"metadata": {"name": "a"}}));
    }
}
