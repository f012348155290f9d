//! Changed fields of an object. Only paths are returned, never values, since objects can hold secrets.

use serde_json::Value;
use windlass_object::names;

/// Fields that only the API server writes.
const BOOKKEEPING: [&str; 8] = [
    ".status",
    ".metadata.managedFields",
    ".metadata.resourceVersion",
    ".metadata.generation",
    ".metadata.uid",
    ".metadata.creationTimestamp",
    ".metadata.selfLink",
    // Conversion is armed separately, after it was proven.
    ".spec.conversion",
];

/// Returns the paths of the fields in which `after` differs from `before`.
pub(super) fn changed_fields(before: &Value, after: &Value) -> Vec<String> {
    let mut fields = Vec::new();
    compare("", before, after, &mut fields);
    fields
}

fn compare(path: &str, before: &Value, after: &Value, fields: &mut Vec<String>) {
    let hash = format!(".metadata.annotations[{}]", names::APPLIED_HASH);
    if before == after || BOOKKEEPING.contains(&path) || path == hash {
        return;
    }
    match (before, after) {
        (Value::Object(one), Value::Object(other)) => {
            let mut names: Vec<_> = one.keys().chain(other.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let value = |of: &serde_json::Map<String, Value>| of.get(name).cloned().unwrap_or_default();
                compare(&child_path(path, name), &value(one), &value(other), fields);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                compare(&format!("{path}[{index}]"), one, other, fields);
            }
        }
        _ => fields.push(path.to_owned()),
    }
}

fn child_path(path: &str, name: &str) -> String {
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || character == '_' || character == '-';
    if name.chars().all(is_plain) {
        format!("{path}.{name}")
    } else {
        format!("{path}[{name}]")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn server_managed_fields_are_not_listed_as_changes() {
        let before = json!({
            "metadata": {"resourceVersion": "1", "annotations": {"a/b": "1", "windlass.dev/applied-hash": "x"}},
            "spec": {"replicas": 1, "containers": [{"image": "a"}], "args": ["a"], "conversion": {}},
            "data": {"tls.key": "secret"}, "status": {"a": 1},
        });
        assert_eq!(changed_fields(&before, &before), Vec::<String>::new());
        let after = json!({
            "metadata": {"resourceVersion": "2", "annotations": {"a/b": "2", "windlass.dev/applied-hash": "y"}},
            "spec": {"replicas": 1, "containers": [{"image": "b"}], "args": ["a", "b"], "new": true},
            "data": {"tls.key": "other"}, "status": {"a": 2},
        });
        let fields = changed_fields(&before, &after);
        assert_eq!(
            fields,
            [
                ".data[tls.key]",
                ".metadata.annotations[a/b]",
                ".spec.args",
                ".spec.containers[0].image",
                ".spec.new"
            ]
        );
    }
}
