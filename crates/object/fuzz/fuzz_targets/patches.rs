//! A patch built from any object and any change can be applied, makes exactly that change, and fails if the
//! object has changed since.

#![no_main]

use json_patch::Patch;
use libfuzzer_sys::{arbitrary, fuzz_target};
use serde_json::{Map, Value, json};
use windlass_object::patch::{applied_by, changed_entries, guarded, is_written_by, relabelled, release};

#[derive(arbitrary::Arbitrary, Debug)]
struct Input<'a> {
    object: &'a str,
    labels: Vec<(Name<'a>, Option<&'a str>)>,
    annotations: Vec<(Name<'a>, Option<&'a str>)>,
    meta: Meta<'a>,
}

/// Object metadata.
#[derive(arbitrary::Arbitrary, Debug)]
struct Meta<'a> {
    labels: Option<Vec<(Name<'a>, &'a str)>>,
    annotations: Option<Vec<(Name<'a>, &'a str)>>,
    entries: Vec<(u8, u8, Option<&'a str>)>,
    version: Option<u8>,
}

/// Few names, so that objects and changes share some.
#[derive(arbitrary::Arbitrary, Debug)]
enum Name<'a> {
    First,
    Slash,
    Tilde,
    Escape,
    Empty,
    Other(&'a str),
}

impl Name<'_> {
    fn text(&self) -> &str {
        match self {
            Self::First => "first",
            Self::Slash => "windlass.dev/first",
            Self::Tilde => "a~b",
            Self::Escape => "a~1b",
            Self::Empty => "",
            Self::Other(name) => name,
        }
    }
}

impl Meta<'_> {
    fn value(&self) -> Value {
        let mut metadata = json!({"name": "a"});
        for (field, entries) in [("labels", &self.labels), ("annotations", &self.annotations)] {
            if let Some(entries) = entries {
                metadata[field] = entries
                    .iter()
                    .map(|(name, value)| (name.text().to_owned(), json!(value)))
                    .collect::<Map<_, _>>()
                    .into();
            }
        }
        if let Some(version) = self.version {
            metadata["resourceVersion"] = version.to_string().into();
        }
        let managers = ["m", "other", "windlass-inject"];
        let operations = ["Apply", "Update", ""];
        let entries = self.entries.iter().map(|(manager, operation, subresource)| {
            let mut entry = json!({"manager": managers[usize::from(*manager) % 3], "operation": operations[usize::from(*operation) % 3]});
            if let Some(subresource) = subresource {
                entry["subresource"] = (*subresource).into();
            }
            entry
        });
        metadata["managedFields"] = entries.collect();
        metadata
    }
}

fn change(entries: &[(Name<'_>, Option<&str>)]) -> Value {
    entries
        .iter()
        .map(|(name, value)| (name.text().to_owned(), json!(value)))
        .collect::<Map<_, _>>()
        .into()
}

/// Returns a map after a change.
fn expected(before: &Value, change: &Value) -> Map<String, Value> {
    let mut expected = before.as_object().cloned().unwrap_or_default();
    for (name, value) in change.as_object().into_iter().flatten() {
        match value {
            Value::Null => drop(expected.shift_remove(name)),
            value => drop(expected.insert(name.clone(), value.clone())),
        }
    }
    expected
}

fn without(object: &Value, field: &str) -> Value {
    let mut rest = object.clone();
    if let Some(Value::Object(metadata)) = rest.get_mut("metadata") {
        metadata.shift_remove(field);
    }
    rest
}

fuzz_target!(|input: Input<'_>| {
    let mut object: Value = serde_json::from_str(input.object).unwrap_or_default();
    if !object.is_object() {
        object = json!({});
    }
    object["metadata"] = input.meta.value();
    let (labels, annotations) = (change(&input.labels), change(&input.annotations));

    let mut patched = object.clone();
    let patch = relabelled(&object, &labels, &annotations);
    // Without a resourceVersion there is no guard.
    if object["metadata"].get("resourceVersion").is_some() {
        json_patch::patch(&mut patched, &patch).expect("the object has not changed");
        for (field, change) in [("labels", &labels), ("annotations", &annotations)] {
            let before = &object["metadata"][field];
            let after = patched["metadata"][field]
                .as_object()
                .cloned()
                .unwrap_or_default();
            assert_eq!(after, expected(before, change), "{before} {change}");
        }
        assert_eq!(
            without(&without(&patched, "labels"), "annotations"),
            without(&without(&object, "labels"), "annotations")
        );
        let mut newer = object.clone();
        newer["metadata"]["resourceVersion"] = "newer".into();
        assert!(json_patch::patch(&mut newer, &patch).is_err());
    }
    let mut alone = object.clone();
    json_patch::patch(
        &mut alone,
        &Patch(changed_entries(&object, "/metadata/labels", &labels)),
    )
    .expect("the object is unchanged");
    assert_eq!(without(&alone, "labels"), without(&object, "labels"));

    let name = json!(input.labels.first().map(|(name, _)| name.text()));
    let mut put = object.clone();
    let patch = guarded(&[("/metadata/name", &object["metadata"]["name"])], "/spec", &name);
    json_patch::patch(&mut put, &patch).expect("the object is unchanged");
    assert_eq!(put["spec"], name);

    let mut released = object.clone();
    let mut left = 0;
    while let Some(patch) = release(&released, "m") {
        json_patch::patch(&mut released, &patch).expect("the object is unchanged");
        assert_eq!(
            without(&released, "managedFields"),
            without(&object, "managedFields")
        );
        left += 1;
        assert!(left <= input.meta.entries.len());
    }
    assert_eq!(applied_by(&released, "m"), applied_by(&object, "m"));
    assert!(!is_written_by(&released, "m") || applied_by(&released, "m"));
    assert_eq!(is_written_by(&released, "other"), is_written_by(&object, "other"));
});
