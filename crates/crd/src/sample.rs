//! The smallest object that a CustomResourceDefinition's schema accepts, to test a conversion while nothing
//! is stored.

use serde_json::{Map, Value, json};
use windlass_object::object;

use crate::{storage_version, version_name, versions};

/// An object to send to a webhook while nothing is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The object. It is never stored, so its name and uid refer to nothing.
    pub object: Value,
    /// Whether it is generated from the schema instead of being an example by the author. A webhook may
    /// require more than the schema says, so its rejection proves nothing.
    pub is_generated: bool,
}

/// The name of a sample, which is never stored.
pub const SAMPLE_NAME: &str = "windlass-proof";

/// Depth limit of a generated object. A schema that requires more has no small object.
const MAX_DEPTH: usize = 12;

/// Returns the smallest object of `version`. It is never stored, so its name and uid refer to nothing.
fn minimal_object(crd: &Value, version: &str) -> Value {
    let schema = crate::version(crd, version).and_then(|version| version.pointer("/schema/openAPIV3Schema"));
    let mut sample = match schema.map(|schema| minimal_value(schema, 0)) {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    // Most webhooks expect a spec.
    if schema
        .and_then(|schema| schema.pointer("/properties/spec"))
        .is_some()
    {
        sample.entry("spec").or_insert_with(|| json!({}));
    }
    let group = object::text(crd, "/spec/group").unwrap_or_default();
    sample.insert("apiVersion".into(), format!("{group}/{version}").into());
    sample.insert(
        "kind".into(),
        object::text(crd, "/spec/names/kind").unwrap_or_default().into(),
    );
    sample.insert("metadata".into(), metadata(crd));
    Value::Object(sample)
}

fn metadata(crd: &Value) -> Value {
    let mut metadata = json!({
        "name": SAMPLE_NAME,
        "uid": "00000000-0000-4000-8000-000000000000",
        "creationTimestamp": "2000-01-01T00:00:00Z",
    });
    if object::text(crd, "/spec/scope") == Some("Namespaced") {
        metadata["namespace"] = "default".into();
    }
    metadata
}

/// Returns a sample: an example by the author, preferably in the storage version, or the smallest object that
/// the schema accepts.
pub fn sample_object(crd: &Value, examples: &[Value]) -> Sample {
    let storage = storage_version(crd).unwrap_or_default();
    let versions = versions(crd).iter().map(version_name);
    let others = versions.filter(|version| *version != storage);
    let example = std::iter::once(storage)
        .chain(others)
        .find_map(|version| example(crd, version, examples));
    sample(crd, storage, example)
}

/// Returns a sample in one version.
pub fn sample_of_version(crd: &Value, version: &str, examples: &[Value]) -> Sample {
    sample(crd, version, example(crd, version, examples))
}

/// Returns the example of a CustomResourceDefinition in one of its versions.
fn example<'a>(crd: &Value, version: &str, examples: &'a [Value]) -> Option<&'a Value> {
    let group = object::text(crd, "/spec/group").unwrap_or_default();
    let kind = object::text(crd, "/spec/names/kind");
    let api_version = format!("{group}/{version}");
    examples.iter().find(|example| {
        object::text(example, "/kind") == kind && object::text(example, "/apiVersion") == Some(&api_version)
    })
}

fn sample(crd: &Value, version: &str, example: Option<&Value>) -> Sample {
    let Some(example) = example else {
        return Sample {
            object: minimal_object(crd, version),
            is_generated: true,
        };
    };
    let mut sample = example.clone();
    let mut metadata = metadata(crd);
    for part in ["labels", "annotations"] {
        if let Some(written) = example.pointer(&format!("/metadata/{part}")) {
            metadata[part] = written.clone();
        }
    }
    sample["metadata"] = metadata;
    Sample {
        object: sample,
        is_generated: false,
    }
}

/// Returns the smallest value of a schema: its required fields, with defaults if it has any.
fn minimal_value(schema: &Value, depth: usize) -> Value {
    if let Some(default) = schema.get("default") {
        return default.clone();
    }
    if let Some(first) = object::items(schema, "/enum").first() {
        return first.clone();
    }
    match object::text(schema, "/type") {
        Some("object") if depth < MAX_DEPTH => {
            let fields = object::items(schema, "/required")
                .iter()
                .filter_map(Value::as_str)
                .filter_map(|name| {
                    let property = schema.get("properties")?.get(name)?;
                    Some((name.to_owned(), minimal_value(property, depth + 1)))
                })
                .collect();
            Value::Object(fields)
        }
        Some("object") => json!({}),
        Some("array") => {
            let least = schema
                .get("minItems")
                .and_then(Value::as_u64)
                .unwrap_or(0)
                .min(16);
            let item = schema.get("items").filter(|_| depth < MAX_DEPTH);
            (0..least)
                .filter_map(|_| item.map(|item| minimal_value(item, depth + 1)))
                .collect()
        }
        Some("integer") => json!(schema.get("minimum").and_then(Value::as_i64).unwrap_or(0).max(0)),
        Some("number") => json!(
            schema
                .get("minimum")
                .and_then(Value::as_f64)
                .unwrap_or(0.0)
                .max(0.0)
        ),
        Some("boolean") => json!(false),
        Some("string") => {
            let least = schema
                .get("minLength")
                .and_then(Value::as_u64)
                .unwrap_or(0)
                .min(1024);
            match object::text(schema, "/format") {
                Some("date-time") => json!("2000-01-01T00:00:00Z"),
                _ => Value::from("x".repeat(usize::try_from(least).unwrap_or(0))),
            }
        }
        _ if schema.get("x-kubernetes-int-or-string").is_some() => json!(0),
        _ => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn crd(schema: Value) -> Value {
        json!({"spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget"},
            "versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]
        }})
    }

    #[test]
    fn a_sample_has_all_required_fields() {
        let sample = minimal_object(
            &crd(
                json!({"type": "object", "required": ["spec"], "properties": {"spec": {
                    "type": "object", "required": ["size", "color", "name", "parts"],
                    "properties": {
                        "size": {"type": "integer", "minimum": 3}, "color": {"type": "string", "enum": ["blue"]},
                        "name": {"type": "string", "minLength": 2}, "optional": {"type": "string"},
                        "parts": {"type": "array", "minItems": 1, "items": {"type": "boolean"}}
                    }
                }}}),
            ),
            "v1",
        );
        assert_eq!(
            sample["spec"],
            json!({"size": 3, "color": "blue", "name": "xx", "parts": [false]})
        );
        assert_eq!(sample["apiVersion"], "example.com/v1");
        assert_eq!(sample["kind"], "Widget");
        assert_eq!(sample["metadata"]["namespace"], "default");
    }

    #[test]
    fn an_example_of_the_author_is_preferred() {
        let mut crd = crd(json!({"type": "object"}));
        crd["spec"]["versions"] = json!([
            {"name": "v1beta1", "storage": false}, {"name": "v1", "storage": true}
        ]);
        let example = |version: &str, kind: &str| {
            json!({"apiVersion": format!("example.com/{version}"), "kind": kind,
                "metadata": {"name": "mine", "labels": {"a": "b"}}, "spec": {"of": version}})
        };
        let all = [
            example("v1beta1", "Widget"),
            example("v1", "Gadget"),
            example("v1", "Widget"),
            example("v2", "Widget"),
        ];
        for (examples, expected) in [
            (&all[..], json!("v1")),
            (&all[..2], json!("v1beta1")),
            (&all[3..], Value::Null),
            (&[], Value::Null),
        ] {
            let Sample {
                object: sample,
                is_generated,
            } = sample_object(&crd, examples);
            assert_eq!(is_generated, expected.is_null());
            assert_eq!(sample["spec"]["of"], expected);
            assert_eq!(sample["metadata"]["name"], "windlass-proof");
            assert_eq!(sample["kind"], "Widget");
        }
        assert_eq!(sample_object(&crd, &[]).object["apiVersion"], "example.com/v1");
        assert_eq!(
            sample_object(&crd, &all).object["metadata"]["labels"],
            json!({"a": "b"})
        );
        for (version, expected) in [
            ("v1beta1", json!("v1beta1")),
            ("v1", json!("v1")),
            ("v0", Value::Null),
        ] {
            let sample = sample_of_version(&crd, version, &all);
            assert_eq!(sample.object["spec"]["of"], expected);
            assert_eq!(sample.object["apiVersion"], format!("example.com/{version}"));
            assert_eq!(sample.is_generated, expected.is_null());
        }
    }

    proptest! {
        #[test]
        fn every_schema_yields_an_object(text in "\\{(\"(type|required|properties|minItems)\":(\"object\"|\"array\"|\\{\\}|\\[\\]|7),?){0,4}\\}") {
            let schema = serde_json::from_str(&text).unwrap_or(Value::Null);
            prop_assert_eq!(&minimal_object(&crd(schema), "v1")["kind"], "Widget");
        }
    }
}
