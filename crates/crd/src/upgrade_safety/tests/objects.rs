//! Trials of stored objects, and the choice of objects to try.

use proptest::prelude::*;

use super::*;
use crate::upgrade_safety::{
    Enforcement, Exception, Extent, Trial, UpgradeRule, compare_back, versions_to_try,
};

const CRD: &str = "widgets.example.com";

/// Returns a widget in the namespace `shop` with the fields of `spec` in YAML.
fn widget(name: &str, spec: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name, "namespace": "shop"},
        "spec": document(spec)})
}

/// Returns a CRD whose schema has `spec` with these properties in YAML.
fn with_spec(properties: &str) -> Value {
    crd(&format!(
        "{{type: object, properties: {{spec: {{type: object, properties: {{{properties}}}}}}}}}"
    ))
}

fn check_objects(
    old: &Value,
    new: &Value,
    objects: &[Value],
    extent: Extent,
    policy: &Policy,
) -> Vec<Finding> {
    let mut trial = Trial::new("v1", old, new);
    objects.iter().for_each(|object| trial.add(object));
    trial.finish(extent).findings(CRD, policy)
}

/// Returns the harm to all of `objects`, without the names of CRD, version and rule.
fn harm(old: &Value, new: &Value, objects: &[Value]) -> Vec<String> {
    let findings = check_objects(old, new, objects, Extent::All, &strict());
    let words = findings.iter().map(|finding| {
        assert_eq!(
            (finding.crd.as_str(), finding.rule),
            (CRD, UpgradeRule::StoredObjects)
        );
        assert_eq!(finding.version.as_deref(), Some("v1"));
        format!("{}: {}", finding.field.as_deref().unwrap_or("-"), finding.message)
    });
    words.collect()
}

fn excepting(exceptions: &str) -> Policy {
    Policy {
        lenient: false,
        exceptions: Exception::parse("exceptions", exceptions.as_bytes()).unwrap(),
    }
}

#[test]
fn a_broken_object_is_named_with_its_field() {
    let ports = "ports: {type: array, items: {type: object, properties: {name: {type: string}";
    for (old, new, spec, expected) in [
        (
            "size: {type: integer}",
            "size: {type: integer, maximum: 9}",
            "{size: 10}",
            &[
                "^.spec.size: 1 of 1 objects would become invalid: shop/a (spec.size: Invalid value: spec.size in body should be less than or equal to 9)",
            ][..],
        ),
        (
            "size: {type: integer}",
            "size: {type: integer, maximum: 9}",
            "{size: 9}",
            &[],
        ),
        (
            "color: {type: string, enum: [red, blue]}",
            "color: {type: string, enum: [blue]}",
            "{color: red}",
            &[
                "^.spec.color: 1 of 1 objects would become invalid: shop/a (spec.color: Unsupported value: supported values: \"blue\")",
            ],
        ),
        (
            "size: {type: integer}, color: {type: string}",
            "size: {type: integer}",
            "{color: red}",
            &["^.spec.color: 1 of 1 objects would lose the value of this field: shop/a (spec.color)"],
        ),
        (
            "size: {type: integer}, color: {type: string}",
            "size: {type: integer}",
            "{size: 1}",
            &[],
        ),
        (
            format!("{ports}}}}}}}").as_str(),
            format!("{ports}}}, required: [name]}}}}").as_str(),
            "{ports: [{name: a}, {}, {}]}",
            &[
                "^.spec.ports.items.name: 1 of 1 objects would become invalid: shop/a (spec.ports[1].name: Required value)",
            ],
        ),
        // A default provides the required field.
        (
            format!("{ports}}}}}}}").as_str(),
            "ports: {type: array, items: {type: object, required: [name], properties: {name: {type: string, default: x}}}}",
            "{ports: [{}]}",
            &[],
        ),
        (
            "free: {type: object, x-kubernetes-preserve-unknown-fields: true}",
            "free: {type: object, properties: {a: {type: string}}}",
            "{free: {a: x, b: y, c: z}}",
            &["^.spec.free: 1 of 1 objects would lose the value of this field: shop/a (spec.free.b)"],
        ),
        (
            "labels: {type: object, additionalProperties: {type: string}}",
            "labels: {type: object, additionalProperties: {type: string, maxLength: 2}}",
            "{labels: {example.com/a: long}}",
            &[
                "^.spec.labels.additionalProperties: 1 of 1 objects would become invalid: shop/a (spec.labels.example.com/a: Too long: may not be more than 2 bytes)",
            ],
        ),
        (
            "size: {type: integer}",
            "size: {type: integer, x-kubernetes-validations: [{rule: self < 5, message: is too large}]}",
            "{size: 7}",
            &[
                "^.spec.size: 1 of 1 objects would become invalid: shop/a (spec.size: Invalid value: is too large)",
            ],
        ),
    ] {
        let found = harm(&with_spec(old), &with_spec(new), &[widget("a", spec)]);
        assert_eq!(found, expected, "{old} -> {new} with {spec}");
    }
}

#[test]
fn already_invalid_objects_are_not_reported() {
    let old = with_spec("size: {type: integer, maximum: 9}");
    let new = with_spec("size: {type: integer, maximum: 9}, color: {type: string}");
    assert_eq!(harm(&old, &new, &[widget("a", "{size: 10}")]), [""; 0]);
}

#[test]
fn already_pruned_fields_are_not_reported() {
    let old = with_spec("size: {type: integer}");
    let new = with_spec("size: {type: integer, maximum: 9}");
    assert_eq!(harm(&old, &new, &[widget("a", "{bogus: 1}")]), [""; 0]);
    let mut keeps = old.clone();
    keeps["spec"]["preserveUnknownFields"] = true.into();
    let expected = "^.spec: 1 of 1 objects would lose the value of this field: shop/a (spec.bogus)";
    assert_eq!(harm(&keeps, &new, &[widget("a", "{bogus: 1}")]), [expected]);
    assert_eq!(harm(&old, &keeps, &[widget("a", "{bogus: 1}")]), [""; 0]);
}

#[test]
fn rules_that_cannot_be_evaluated_are_warnings() {
    let old = with_spec("size: {type: integer}");
    let new = with_spec("size: {type: integer, x-kubernetes-validations: [{rule: noSuchFunction(self)}]}");
    let findings = check_objects(&old, &new, &[widget("a", "{size: 1}")], Extent::All, &strict());
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0].enforcement, Enforcement::Warn);
    assert!(
        findings[0].message.starts_with(
            "1 of 1 objects are subject to a rule that only the API server can evaluate: shop/a"
        ),
        "{findings:?}"
    );
}

#[test]
fn only_the_first_objects_are_named() {
    let old = with_spec("size: {type: integer}, color: {type: string}");
    let new = with_spec("size: {type: integer}");
    let objects: Vec<_> = (0..7)
        .map(|index| {
            widget(
                &format!("w{index}"),
                if index == 0 { "{}" } else { "{color: red}" },
            )
        })
        .collect();
    assert_eq!(
        harm(&old, &new, &objects),
        [
            "^.spec.color: 6 of 7 objects would lose the value of this field: shop/w1 (spec.color), shop/w2 (spec.color), shop/w3 (spec.color), and 3 more"
        ]
    );
}

#[test]
fn values_are_never_shown() {
    let old = with_spec("when: {type: string}, name: {type: string}, kind: {}");
    let new = with_spec(
        "when: {type: string, format: date-time}, name: {type: string, pattern: '^a$'}, kind: {enum: [x]}",
    );
    let object = widget("a", "{when: s3cret, name: s3cret, kind: {a: s3cret}}");
    let found = harm(&old, &new, &[object]);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(!found.concat().contains("s3cret"), "{found:?}");
}

#[test]
fn a_sample_is_reported_with_its_size() {
    let old = with_spec("size: {type: integer}");
    let new = with_spec("size: {type: integer, maximum: 9}");
    let objects = [widget("a", "{size: 1}"), widget("b", "{size: 10}")];
    for (of, words) in [
        (Some(123_456), "the first 2 of 123456 objects"),
        (None, "the first 2 objects"),
    ] {
        let findings = check_objects(&old, &new, &objects, Extent::Sample { of }, &strict());
        let [sample, harm] = &findings[..] else {
            panic!("{findings:?}");
        };
        assert_eq!(sample.message, format!("only {words} were tried"));
        assert_eq!(
            (sample.enforcement, harm.enforcement),
            (Enforcement::Warn, Enforcement::Strict)
        );
        let start = format!("1 of {words} would become invalid: shop/b ");
        assert!(harm.message.starts_with(&start), "{harm:?}");
    }
    let ignored = excepting("[{rule: storedObjects, enforcement: None}]");
    let extent = Extent::Sample { of: None };
    assert_eq!(check_objects(&old, &new, &objects, extent, &ignored), []);
}

#[test]
fn exceptions_apply_to_objects_too() {
    let old = with_spec("size: {type: integer}");
    let new = with_spec("size: {type: integer, maximum: 9}");
    let objects = [widget("a", "{size: 10}")];
    for (exceptions, expected) in [
        ("[]", Some(Enforcement::Strict)),
        ("[{rule: maximum, enforcement: None}]", Some(Enforcement::Strict)),
        (
            "[{rule: storedObjects, enforcement: Warn}]",
            Some(Enforcement::Warn),
        ),
        ("[{field: ^.spec.size, enforcement: None}]", None),
        ("[{version: v1, rule: storedObjects, enforcement: None}]", None),
        (
            "[{field: ^.spec.color, enforcement: None}]",
            Some(Enforcement::Strict),
        ),
    ] {
        let findings = check_objects(&old, &new, &objects, Extent::All, &excepting(exceptions));
        let enforcement = findings.first().map(|finding| finding.enforcement);
        assert_eq!(enforcement, expected, "{exceptions}");
    }
}

#[test]
fn only_served_versions_with_a_changed_schema_are_tried() {
    let served = |versions: &[(&str, bool, &str)]| {
        let mut crd = crd("{}");
        let versions = versions.iter().map(|(name, served, schema)| {
            json!({"name": name, "served": served, "schema": {"openAPIV3Schema": document(schema)}})
        });
        crd["spec"]["versions"] = versions.collect();
        crd
    };
    let (string, integer) = ("{type: string}", "{type: integer}");
    let old = served(&[
        ("v1", true, string),
        ("v2", true, string),
        ("v3", false, string),
        ("v4", true, string),
    ]);
    let new = served(&[
        ("v1", true, integer),
        ("v2", true, "{type: string, description: better now}"),
        ("v3", true, integer),
        ("v5", true, integer),
    ]);
    assert_eq!(versions_to_try(&old, &new), ["v1"]);
    let hidden = served(&[("v1", false, integer)]);
    assert_eq!(
        versions_to_try(&old, &hidden),
        ["v1"],
        "it is stored nevertheless"
    );
    let mut keeps = old.clone();
    keeps["spec"]["preserveUnknownFields"] = true.into();
    assert_eq!(versions_to_try(&keeps, &old), ["v1", "v2", "v4"]);
}

#[test]
fn a_rollback_tries_only_readable_objects() {
    let installed = with_spec("size: {type: integer}");
    let mut failed = with_spec("size: {type: integer, maximum: 9}, color: {type: string}");
    assert!(!compared(&failed, &installed).is_empty());
    let back = |live: &Value| lines(&compare_back(CRD, live, &installed, &strict()));
    assert_eq!(back(&failed), [""; 0]);

    failed["spec"]["versions"][0]["served"] = false.into();
    failed["status"] = json!({"storedVersions": ["v1"]});
    assert_eq!(
        back(&failed),
        [format!(
            "{CRD} v1 ^.spec.color existingFieldRemoval: removed field : v1.^.spec.color"
        )]
    );

    let mut moved = installed.clone();
    moved["spec"]["versions"][0]["name"] = "v2".into();
    moved["status"] = json!({"storedVersions": ["v2"]});
    assert_eq!(
        back(&moved)[0],
        format!("{CRD} - - storedVersionRemoval: stored versions removed : [v2]")
    );
}

/// Generates values that roughly match schemas of [`schemas`].
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        (-3..12_i64).prop_map(Value::from),
        "[a-c.\\[]{0,3}".prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c.]{1,2}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Generates schemas of objects, lists and leaves, with constraints.
fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        (0..9_i64).prop_map(|most| json!({"type": "integer", "maximum": most})),
        (0..3_u64).prop_map(|most| json!({"type": "string", "maxLength": most})),
        Just(json!({"type": "string", "pattern": "^a"})),
        Just(json!({"x-kubernetes-preserve-unknown-fields": true})),
        Just(json!({"enum": ["a", 1, true]})),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::btree_map("[a-c]", inner.clone(), 0..3)
                .prop_map(|fields| json!({"type": "object", "properties": fields, "required": ["a"]})),
            inner
                .clone()
                .prop_map(|schema| json!({"type": "object", "additionalProperties": schema})),
            (inner, 0..2_u64)
                .prop_map(|(schema, most)| json!({"type": "array", "items": schema, "maxItems": most})),
        ]
    })
}

fn crd_with_spec_schema(schema: &Value) -> Value {
    let mut crd = crd("{}");
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "properties": {"spec": schema}});
    crd
}

/// Removes the constraints from a schema, which keeps every field.
fn loosened(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| {
                let limits = [
                    "type",
                    "maximum",
                    "maxLength",
                    "maxItems",
                    "pattern",
                    "enum",
                    "required",
                ];
                !limits.contains(&name.as_str())
            })
            .map(|(name, value)| (name.clone(), loosened(value)))
            .collect(),
        _ => schema.clone(),
    }
}

proptest! {
    #[test]
    fn an_unchanged_crd_harms_no_object(schema in schemas(), spec in values()) {
        let crd = crd_with_spec_schema(&schema);
        prop_assert_eq!(versions_to_try(&crd, &crd), [""; 0]);
        let object = json!({"metadata": {"name": "a"}, "spec": spec});
        prop_assert_eq!(harm(&crd, &crd, &[object]), [""; 0]);
    }

    #[test]
    fn a_looser_schema_harms_nothing(schema in schemas(), spec in values()) {
        let object = json!({"metadata": {"name": "a"}, "spec": spec});
        let new = crd_with_spec_schema(&loosened(&schema));
        prop_assert_eq!(harm(&crd_with_spec_schema(&schema), &new, &[object]), [""; 0]);
    }

    #[test]
    fn findings_name_fields_and_few_objects(
        old in schemas(),
        new in schemas(),
        specs in prop::collection::vec(values(), 0..6),
    ) {
        let objects: Vec<_> = specs
            .iter()
            .map(|spec| json!({"metadata": {"name": "a"}, "spec": spec}))
            .collect();
        let (old, new) = (crd_with_spec_schema(&old), crd_with_spec_schema(&new));
        for finding in check_objects(&old, &new, &objects, Extent::All, &strict()) {
            prop_assert!(finding.field.is_some_and(|field| field.starts_with('^')));
            prop_assert!(finding.message.len() < 2000);
        }
    }
}
