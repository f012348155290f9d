//! Admission of the sample resources. Other kinds are admitted unchanged.

use serde_json::{Value, json};

use crate::conversion;

/// The annotation that the mutating webhook sets.
const MUTATED: &str = "sample.windlass.dev/mutated";

/// Annotates an object, and sets its color if it has none.
pub(crate) fn mutate(object: &mut Value) {
    if !conversion::is_sample(object) {
        return;
    }
    if object["metadata"].is_object() && !object["metadata"]["annotations"].is_object() {
        object["metadata"]["annotations"] = json!({});
    }
    if let Some(annotations) = object
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut)
    {
        annotations.insert(MUTATED.to_owned(), json!("true"));
    }
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.entry("color").or_insert_with(|| json!("blue"));
    }
}

/// Rejects a negative size, in the field of each version.
pub(crate) fn validate(object: &Value) -> Result<(), &'static str> {
    match conversion::size(object) {
        Some(size) if size < 0 => Err("size must not be negative"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(version: &str, spec: &Value) -> Value {
        json!({"apiVersion": format!("sample.windlass.dev/{version}"), "kind": "Gadget", "metadata": {}, "spec": spec})
    }

    #[test]
    fn a_negative_size_is_rejected_in_every_version() {
        for (version, spec) in [
            ("v1", json!({"size": -1})),
            ("v1beta1", json!({"width": "-1"})),
            ("v2", json!({"dimensions": {"size": -1}})),
        ] {
            assert!(validate(&object(version, &spec)).is_err(), "{version}");
        }
        assert_eq!(validate(&object("v1", &json!({"size": 0}))), Ok(()));
    }

    #[test]
    fn an_existing_color_is_kept() {
        let mut given = object("v1", &json!({"color": "red"}));
        mutate(&mut given);
        assert_eq!(given["spec"]["color"], "red");
    }

    #[test]
    fn other_kinds_are_not_changed() {
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {}});
        mutate(&mut pod);
        assert_eq!(
            pod,
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {}})
        );
    }
}
