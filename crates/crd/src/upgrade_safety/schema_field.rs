//! Maps a path in an object to the field of its schema, which exceptions refer to.

use serde_json::Value;
use windlass_object::JsonPath;

/// Returns the schema field of the value at `path` of `object`, in the notation of findings:
/// `spec.ports[0].name` is in `^.spec.ports.items.name`. An unknown field maps to its closest known parent.
pub(super) fn field_of(schema: &Value, object: &Value, path: &str) -> String {
    let mut field = JsonPath::root();
    let (mut schema, mut value, mut rest) = (schema, object, path);
    while !rest.is_empty() {
        let (step, next, after) = if let Some((item, after)) = first_item(value, rest) {
            value = item;
            ("items", &schema["items"], after)
        } else {
            let (name, after) = first_field(schema, value, rest.strip_prefix('.').unwrap_or(rest));
            value = &value[name];
            match schema["properties"].get(name) {
                Some(property) => (name, property, after),
                None => ("additionalProperties", &schema["additionalProperties"], after),
            }
        };
        if !next.is_object() {
            break;
        }
        field = field.field(step);
        schema = next;
        rest = after;
    }
    format!("^{field}")
}

/// Returns the item of the list `value` whose index starts `path`, and the rest of the path.
fn first_item<'a, 'b>(value: &'a Value, path: &'b str) -> Option<(&'a Value, &'b str)> {
    let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
    let item = value.as_array()?.get(index.parse::<usize>().ok()?)?;
    Some((item, rest))
}

/// Returns the field name that starts `path`, and the rest of the path. Names may contain dots, so it is the
/// longest name that the object or schema has, or else the text before the next dot or bracket.
fn first_field<'a>(schema: &Value, value: &Value, path: &'a str) -> (&'a str, &'a str) {
    let known = [value.as_object(), schema["properties"].as_object()];
    let names = known.into_iter().flatten().flat_map(serde_json::Map::keys);
    let longest = names
        .filter(|name| {
            path.strip_prefix(name.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
        .map(String::len)
        .max();
    path.split_at(longest.unwrap_or_else(|| path.find(['.', '[']).unwrap_or(path.len())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_path_maps_to_a_schema_field() {
        let schema = json!({"properties": {
        "spec": {"properties": {
            "size": {},
            "ports": {"items": {"properties": {"name": {}}}},
            "labels": {"additionalProperties": {"properties": {"value": {}}}},
            "free": {"x-kubernetes-preserve-unknown-fields": true},
            "a.b": {"properties": {"c": {}}}, "a": {},
        }}}});
        let object = json!({"spec": {
            "ports": [{"name": "x"}], "labels": {"example.com/a.b[0]": {"value": 1}}, "free": {"any": [1]}}});
        for (path, expected) in [
            ("", "^"),
            ("spec", "^.spec"),
            ("spec.size", "^.spec.size"),
            ("spec.ports[0]", "^.spec.ports.items"),
            ("spec.ports[0].name", "^.spec.ports.items.name"),
            (
                "spec.labels.example.com/a.b[0]",
                "^.spec.labels.additionalProperties",
            ),
            (
                "spec.labels.example.com/a.b[0].value",
                "^.spec.labels.additionalProperties.value",
            ),
            ("spec.a.b.c", "^.spec['a.b'].c"),
            ("spec.free.any[0]", "^.spec.free"),
            ("spec.missing", "^.spec"),
            ("spec.ports[7].name", "^.spec.ports"),
            ("metadata.name", "^"),
        ] {
            assert_eq!(field_of(&schema, &object, path), expected, "{path}");
        }
    }

    proptest! {
        #[test]
        fn every_path_maps_to_a_field(path in r"[a-z.\[\]0-9]{0,12}") {
            let schema = json!({"properties": {"a": {"items": {"additionalProperties": {}}}}});
            let field = field_of(&schema, &json!({"a": [{"b": 1}]}), &path);
            prop_assert!(field.starts_with('^'));
        }
    }
}
