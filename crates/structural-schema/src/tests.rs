use proptest::prelude::*;
use serde_json::{Value, json};

use super::Structural;

fn probe() -> Structural {
    Structural::new(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["n"], "properties": {
            "n": {"type": "integer", "maximum": 9},
            "d": {"type": "string", "default": "dd"},
            "color": {"type": "string", "enum": ["red", "blue"]},
            "port": {"x-kubernetes-int-or-string": true},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                  "items": {"type": "object", "required": ["k"],
                            "properties": {"k": {"type": "string"}, "v": {"type": "string"}}}}}}}}))
}

#[test]
fn violations_have_the_messages_of_kube_apiserver() {
    for (spec, expected) in [
        (
            json!({"n": "x"}),
            "spec.n: Invalid value: \"string\": spec.n in body must be of type integer: \"string\"",
        ),
        (json!({}), "spec.n: Required value"),
        (
            json!({"n": 1, "l": [{"k": "a"}, {"k": "a"}]}),
            "spec.l[1]: Duplicate value: {\"k\":\"a\"}",
        ),
        (
            json!({"n": 1, "set": ["a", "a"]}),
            "spec.set[1]: Duplicate value: \"a\"",
        ),
        (
            json!({"n": 10}),
            "spec.n: Invalid value: 10: spec.n in body should be less than or equal to 9",
        ),
        (
            json!({"n": 1, "color": "green"}),
            "spec.color: Unsupported value: \"green\": supported values: \"red\", \"blue\"",
        ),
    ] {
        let errors = probe().validate(&json!({"spec": spec}), None);
        assert_eq!(
            errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [expected]
        );
    }
    for port in [json!(80), json!("http")] {
        assert_eq!(
            probe().validate(&json!({"spec": {"n": 1, "port": port}}), None),
            []
        );
    }
}

#[test]
fn unchanged_errors_are_ignored() {
    let old = json!({"spec": {"n": 10, "d": "a"}});
    assert_eq!(
        probe().validate(&json!({"spec": {"n": 10, "d": "b"}}), Some(&old)),
        []
    );
    assert_eq!(
        probe()
            .validate(&json!({"spec": {"n": 11, "d": "b"}}), Some(&old))
            .len(),
        1
    );
}

#[test]
fn unknown_fields_are_pruned_unless_preserved() {
    let mut object = json!({"apiVersion": "g/v1", "spec": {"n": 1, "bogus": 1, "free": {"x": 1}, "l": [{"k": "a", "z": 1}]}, "other": 1});
    let unknown = probe().prune(&mut object);
    assert_eq!(unknown, ["spec.bogus", "spec.l[0].z", "other"]);
    assert_eq!(
        object,
        json!({"apiVersion": "g/v1", "spec": {"n": 1, "free": {"x": 1}, "l": [{"k": "a"}]}})
    );
}

#[test]
fn rules_are_evaluated_with_their_messages() {
    let schema = Structural::new(&json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "k": {"type": "string", "x-kubernetes-validations": [
            {"rule": "self == oldSelf", "message": "k is immutable"}]}},
        "x-kubernetes-validations": [{"rule": "self.a < 5", "message": "a is too big"}]}}}));
    let good = json!({"spec": {"a": 1, "k": "x"}});
    assert_eq!(schema.validate(&good, None), []);
    let messages = |object: Value, old: Option<&Value>| -> Vec<String> {
        schema
            .validate(&object, old)
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    assert_eq!(
        messages(json!({"spec": {"a": 7, "k": "x"}}), None),
        ["spec: Invalid value: \"object\": a is too big"]
    );
    assert_eq!(
        messages(json!({"spec": {"a": 1, "k": "y"}}), Some(&good)),
        ["spec.k: Invalid value: \"y\": k is immutable"]
    );
    assert_eq!(
        super::rule_problems(
            &json!({"x-kubernetes-validations": [{"rule": "self.a <"}]}),
            "schema"
        )
        .len(),
        1
    );
}

#[test]
fn rules_that_cannot_be_evaluated_are_reported_separately() {
    let rules = |rule: &str| {
        Structural::new(
            &json!({"type": "object", "properties": {"a": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": rule, "message": "broken"}]}),
        )
    };
    let object = json!({"a": 7});
    for (rule, errors, undecided) in [
        ("self.a == 7", 0, 0),
        ("self.a < 5", 1, 0),
        ("noSuchFunction(self.a)", 0, 1),
        ("self.a <", 0, 1),
    ] {
        let verdict = rules(rule).validate_offline(&object);
        assert_eq!(
            (verdict.errors.len(), verdict.undecided.len()),
            (errors, undecided),
            "{rule}: {verdict:?}"
        );
        let all = rules(rule).validate(&object, None);
        assert_eq!(all, [verdict.errors, verdict.undecided].concat());
    }
}

#[test]
fn an_error_can_be_printed_without_the_value() {
    let schema = Structural::new(&json!({"type": "object", "properties": {
        "when": {"type": "string", "format": "date-time"}, "name": {"type": "string", "pattern": "^a$"},
        "size": {"type": "integer"}, "color": {"enum": ["red"]}, "kept": {"type": "string", "maxLength": 1}},
        "required": ["x"]}));
    let object =
        json!({"when": "secret", "name": "secret", "size": "secret", "color": "secret", "kept": "secret"});
    let errors = schema.validate(&object, None);
    let told: Vec<_> = errors.iter().map(super::FieldError::without_value).collect();
    assert_eq!(
        told,
        [
            "x: Required value",
            "when: Invalid value: when in body must be of type date-time",
            "name: Invalid value: name in body should match '^a$'",
            "size: Invalid value: size in body must be of type integer: \"string\"",
            "color: Unsupported value: supported values: \"red\"",
            "kept: Too long: may not be more than 1 bytes",
        ]
    );
}

/// JSON whose fields have some of `names`.
fn arbitrary_json(names: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z]{0,4}".prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 32, 5, move |inner| {
        let name = prop::sample::select(names);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.prop_map(str::to_owned), inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// The field names of generated objects and schemas.
const FIELDS: &[&str] = &["spec", "n", "d", "l", "set", "k", "x", "metadata", "items"];

/// A schema keyword for a field, valid or not.
fn keyword() -> impl Strategy<Value = (&'static str, Value)> {
    let flags = prop::sample::select(&[
        "nullable",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ]);
    let numbers = prop::sample::select(&[
        "minimum",
        "maximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
    ]);
    let types = prop::sample::select(&["object", "array", "string", "integer", "number", "boolean", "x"]);
    let pattern = prop_oneof!["[a-z^$.*+?(){}|\\[\\]\\\\]{0,8}", ".{0,4}"];
    let rule = prop_oneof![
        "(self|oldSelf)(\\.[a-z]{1,2}){0,2} (==|<|in|&&) (self|[0-9]{1,20}|\"[a-z]\"|\\[self\\]|\\{\\})",
        "[a-z.()\\[\\]{}<>=!&|?:,'\"0-9+*/% -]{0,16}",
        ".{0,6}",
    ];
    prop_oneof![
        types.prop_map(|name| ("type", json!(name))),
        (flags, any::<bool>()).prop_map(|(name, value)| (name, json!(value))),
        (numbers.clone(), any::<i8>()).prop_map(|(name, value)| (name, json!(value))),
        (numbers, any::<f64>()).prop_map(|(name, value)| (name, json!(value))),
        prop::sample::select(&["set", "map", "atomic"])
            .prop_map(|name| ("x-kubernetes-list-type", json!(name))),
        Just(("x-kubernetes-list-map-keys", json!(["k", "x"]))),
        Just(("required", json!(["n", "x"]))),
        Just(("format", json!("date-time"))),
        pattern.prop_map(|pattern| ("pattern", json!(pattern))),
        arbitrary_json(FIELDS).prop_map(|value| ("default", value)),
        arbitrary_json(FIELDS).prop_map(|value| ("enum", json!([value]))),
        rule.prop_map(|rule| ("x-kubernetes-validations", json!([{"rule": rule}]))),
        prop::sample::select(&[
            "items",
            "required",
            "properties",
            "oneOf",
            "x-kubernetes-validations"
        ])
        .prop_flat_map(|name| arbitrary_json(FIELDS).prop_map(move |value| (name, value))),
    ]
}

/// Valid and invalid schemas.
fn arbitrary_schema() -> impl Strategy<Value = Value> {
    let keywords = || prop::collection::vec(keyword(), 0..4);
    let of = |keywords: Vec<(&'static str, Value)>| -> Value {
        let mut schema = json!({});
        for (name, value) in keywords {
            schema[name] = value;
        }
        schema
    };
    keywords().prop_map(of).prop_recursive(3, 16, 4, move |inner| {
        let properties = prop::collection::btree_map(
            prop::sample::select(FIELDS).prop_map(str::to_owned),
            inner.clone(),
            0..4,
        );
        let lists = prop::sample::select(&["allOf", "anyOf", "oneOf"]);
        let nested = prop_oneof![
            properties.prop_map(|properties| ("properties", json!(properties))),
            inner.clone().prop_map(|schema| ("items", schema)),
            inner.clone().prop_map(|schema| ("additionalProperties", schema)),
            inner.clone().prop_map(|schema| ("not", schema)),
            (lists, prop::collection::vec(inner, 0..3)).prop_map(|(name, schemas)| (name, json!(schemas))),
        ];
        (keywords(), prop::collection::vec(nested, 1..3))
            .prop_map(move |(keywords, nested)| of([keywords, nested].concat()))
    })
}

proptest! {
    #[test]
    fn pruning_and_defaulting_twice_is_the_same_as_once(mut object in arbitrary_json(FIELDS)) {
        let schema = probe();
        schema.prune(&mut object);
        schema.default(&mut object);
        let once = object.clone();
        prop_assert!(schema.prune(&mut object).is_empty());
        schema.default(&mut object);
        prop_assert_eq!(object, once);
    }

    #[test]
    fn validation_never_panics(schema in arbitrary_schema(), object in arbitrary_json(FIELDS)) {
        let structural = Structural::new(&schema);
        structural.validate(&object, None);
        structural.validate(&object, Some(&json!({"spec": {"n": 1}})));
        let verdict = structural.validate_offline(&object);
        let all = structural.validate(&object, None);
        prop_assert_eq!(all.len(), verdict.errors.len() + verdict.undecided.len());
        for error in &all {
            error.to_string();
            error.without_value();
        }
        super::rule_problems(&schema, "schema");
        let mut object = object;
        structural.prune(&mut object);
        structural.default(&mut object);
    }

    #[test]
    fn an_unchanged_object_is_always_valid(object in arbitrary_json(FIELDS)) {
        let text = Structural::new(&json!({"type": "string"}));
        prop_assert_eq!(text.validate(&object, Some(&object)), []);
    }
}

#[test]
fn a_violated_rule_names_the_list_item() {
    let rule = json!([{"rule": "self != 'b'", "message": "no b"}]);
    let item = json!({"type": "string", "maxLength": 9, "x-kubernetes-validations": rule});
    let list = json!({"type": "array", "maxItems": 9, "items": item});
    let schema = Structural::new(&json!({"type": "object", "properties": {"l": list}}));
    let errors = schema.validate(&json!({"l": ["a", "b"]}), None);
    assert_eq!(errors[0].to_string(), "l[1]: Invalid value: \"b\": no b");
}

#[test]
fn lists_without_an_item_schema_are_kept() {
    let schema = Structural::new(&json!({"type": "object", "properties": {
        "free": {"x-kubernetes-preserve-unknown-fields": true},
        "strict": {"type": "array", "items": {"type": "object", "properties": {}}},
    }}));
    let mut object = json!({"free": [{"a": [{"b": 1}]}], "strict": [{"a": 1}]});
    assert_eq!(schema.prune(&mut object), ["strict[0].a"]);
    assert_eq!(object, json!({"free": [{"a": [{"b": 1}]}], "strict": [{}]}));
}
