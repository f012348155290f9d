//! Properties of any schemas.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::upgrade_safety::{Enforcement, Exception, UpgradeRule};

/// Generates any JSON, mostly with the words of schemas.
fn garbage() -> impl Strategy<Value = Value> {
    let keyword = prop::sample::select(vec![
        "type",
        "properties",
        "items",
        "additionalProperties",
        "required",
        "enum",
        "default",
        "minimum",
        "maxLength",
        "pattern",
        "nullable",
        "oneOf",
        "anyOf",
        "not",
        "description",
        "format",
        "x-kubernetes-validations",
        "x-kubernetes-list-type",
        "a",
        "b",
        "",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec!["", "string", "object", "atomic", "\u{1}\n"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keyword.clone(), inner), 0..6).prop_map(|fields| {
                Value::Object(
                    fields
                        .into_iter()
                        .map(|(name, value)| (name.to_owned(), value))
                        .collect(),
                )
            }),
        ]
    })
}

/// Generates a schema that an API server might accept.
fn schema() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec!["a", "b", "c", "items", "description"]);
    let leaf = prop_oneof![
        (0..5u8, 5..9u8, any::<bool>()).prop_map(|(minimum, maximum, nullable)| {
            json!({"type": "integer", "minimum": minimum, "maximum": maximum, "nullable": nullable})
        }),
        prop::sample::subsequence(vec!["a", "b", "c"], 1..=3)
            .prop_map(|values| json!({"type": "string", "enum": values, "minLength": 1, "maxLength": 9})),
        Just(json!({"type": "string", "pattern": "a+", "format": "uuid", "default": "a"})),
    ];
    leaf.prop_recursive(4, 48, 5, move |inner| {
        let properties = prop::collection::btree_map(name.clone(), inner.clone(), 1..5);
        prop_oneof![
            3 => (properties, any::<prop::sample::Index>()).prop_map(|(properties, required)| {
                let names: Vec<&str> = properties.keys().copied().collect();
                json!({"type": "object", "required": [required.get(&names)], "properties": properties})
            }),
            1 => inner.clone().prop_map(|items| json!({"type": "array", "maxItems": 7, "minItems": 1, "items": items})),
            1 => inner.prop_map(|values| json!({
                "type": "object", "minProperties": 1, "maxProperties": 6, "additionalProperties": values,
            })),
        ]
    })
}

fn with_schema(schema: &Value) -> Value {
    let mut crd = crd("{}");
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema.clone();
    crd
}

/// Visits every schema in `schema`, including itself.
fn visit(schema: &mut Value, change: &mut dyn FnMut(&mut Map<String, Value>)) {
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    change(fields);
    for (keyword, value) in fields.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties
                    .values_mut()
                    .for_each(|property| visit(property, change));
            }
            ("items" | "additionalProperties", value) => visit(value, change),
            _ => {}
        }
    }
}

/// Applies one of the ways to loosen a schema.
fn loosen(fields: &mut Map<String, Value>, choice: u8) {
    let by = |fields: &mut Map<String, Value>, keyword: &str, by: i64| {
        if let Some(value) = fields.get(keyword).and_then(Value::as_i64) {
            fields.insert(keyword.to_owned(), (value + by).into());
        }
    };
    match choice % 8 {
        0 => ["minimum", "minLength", "minItems", "minProperties"]
            .iter()
            .for_each(|keyword| by(fields, keyword, -1)),
        1 => ["maximum", "maxLength", "maxItems", "maxProperties"]
            .iter()
            .for_each(|keyword| by(fields, keyword, 3)),
        2 => ["minimum", "maximum", "maxLength", "minItems", "required", "enum"]
            .iter()
            .for_each(|keyword| drop(fields.shift_remove(*keyword))),
        3 => {
            if let Some(Value::Array(values)) = fields.get_mut("enum") {
                values.insert(0, "another".into());
            }
        }
        4 => {
            if let Some(Value::Object(properties)) = fields.get_mut("properties") {
                properties.insert("another".to_owned(), json!({"type": "string", "minLength": 5}));
            }
        }
        5 => drop(fields.insert("description".to_owned(), "Another.".into())),
        6 => drop(fields.insert("title".to_owned(), "Another".into())),
        _ => {}
    }
}

/// Returns the paths of all properties, as in findings, with pointers to the maps that contain them.
fn properties(schema: &Value, path: &str, pointer: &str, found: &mut Vec<(String, String, String)>) {
    for (name, property) in schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let below = format!("{path}.{name}");
        let holder = format!("{pointer}/properties");
        properties(property, &below, &format!("{holder}/{name}"), found);
        found.push((below, holder, name.clone()));
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(schema) = schema.get(keyword) {
            properties(
                schema,
                &format!("{path}.{keyword}"),
                &format!("{pointer}/{keyword}"),
                found,
            );
        }
    }
}

/// Reverses the field order of every object.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .rev()
            .map(|(name, value)| (name.clone(), reversed(value)))
            .collect(),
        Value::Array(items) => items.iter().map(reversed).collect(),
        _ => value.clone(),
    }
}

proptest! {
    #[test]
    fn comparing_garbage_never_panics(old in garbage(), new in garbage()) {
        let (old_definition, new_definition) = (with_schema(&old), with_schema(&new));
        let policy = strict();
        for (old, new) in [(&old_definition, &new_definition), (&old, &new), (&old, &new_definition)] {
            for line in compared(old, new) {
                prop_assert!(!line.contains('\n'), "{line}");
            }
            prop_assert_eq!(compare("c", old, old, &policy), []);
            prop_assert_eq!(compare("c", new, new, &policy), []);
        }
    }

    #[test]
    fn a_loosened_crd_passes(schema in schema(), choices in prop::collection::vec(any::<u8>(), 1..20)) {
        let mut looser = schema.clone();
        let mut choices = choices.into_iter().cycle();
        visit(&mut looser, &mut |fields| loosen(fields, choices.next().unwrap_or_default()));
        prop_assert_eq!(compared(&with_schema(&schema), &with_schema(&looser)), [""; 0]);
    }

    #[test]
    fn a_removed_field_is_always_reported(schema in schema(), index in any::<prop::sample::Index>()) {
        let mut all = Vec::new();
        properties(&schema, "^", "", &mut all);
        prop_assume!(!all.is_empty());
        let (path, holder, name) = index.get(&all);
        let mut without = schema.clone();
        without.pointer_mut(holder).and_then(Value::as_object_mut).unwrap().shift_remove(name);
        let findings = compare("c", &with_schema(&schema), &with_schema(&without), &strict());
        prop_assert_eq!(findings.len(), 1);
        prop_assert_eq!(findings[0].rule, UpgradeRule::ExistingFieldRemoval);
        prop_assert_eq!(findings[0].field.as_ref(), Some(path));
        prop_assert_eq!(findings[0].enforcement, Enforcement::Strict);
        // Each finding can be allowed by its own name.
        let policy = Policy {
            lenient: false,
            exceptions: vec![Exception {
                crd: Some("c".into()),
                version: Some("v1".into()),
                field: Some(path.clone()),
                rule: Some(UpgradeRule::ExistingFieldRemoval),
                enforcement: Enforcement::None,
            }],
        };
        prop_assert_eq!(compare("c", &with_schema(&schema), &with_schema(&without), &policy), []);
    }

    #[test]
    fn the_field_order_does_not_matter(old in schema(), new in schema(), garbage in garbage()) {
        for new in [new, garbage] {
            let (old, new) = (with_schema(&old), with_schema(&new));
            prop_assert_eq!(compared(&old, &new), compared(&reversed(&old), &reversed(&new)));
        }
    }
}

#[test]
fn too_deep_schemas_are_rejected() {
    let nested =
        |depth: usize| (0..depth).fold(json!({"type": "string"}), |schema, _| json!({"items": schema}));
    assert_eq!(
        compared(&with_schema(&nested(100)), &with_schema(&nested(100))),
        [""; 0]
    );
    let lines = compared(&with_schema(&nested(500)), &with_schema(&nested(500)));
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains("nested 128 fields deep"), "{}", lines[0]);
}

#[test]
fn too_many_findings_end_in_a_refusal() {
    let name = "a".repeat(1000);
    let properties: Map<String, Value> = (0..5000)
        .map(|index| (format!("{name}{index}"), json!({"type": "string"})))
        .collect();
    let old = with_schema(&json!({"properties": properties}));
    let findings = compare("c", &old, &with_schema(&json!({})), &strict());
    assert!(findings.len() < 5000);
    assert!(
        findings
            .iter()
            .any(|finding| finding.message.contains("too many properties to compare"))
    );
}

#[test]
fn many_equal_versions_are_accepted() {
    let versions: Vec<Value> = (1..=200)
        .map(|index| {
            json!({"name": format!("v{index}"), "served": true, "schema": {"openAPIV3Schema": {
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "string"}},
            }}})
        })
        .collect();
    let mut crd = crd("{}");
    crd["spec"]["versions"] = versions.into();
    let lines = compared(&crd, &crd);
    assert_eq!(lines, [""; 0]);
}
