use proptest::prelude::*;
use serde_json::{Value, json};

use super::{ListType, Structural, TypeSchema};

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
fn violations_are_worded_as_the_real_servers() {
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
fn what_was_wrong_before_and_did_not_change_does_not_block() {
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
fn unknown_fields_go_and_are_told_unless_they_are_to_be_kept() {
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
fn built_in_lists_merge_by_their_keys() {
    let deployment = TypeSchema::built_in("Deployment");
    let containers = ["spec", "template", "spec", "containers"];
    assert_eq!(
        deployment.list(&containers),
        ListType::Map(vec!["name".to_owned()])
    );
    let ports = [containers.as_slice(), &["*", "ports"]].concat();
    assert_eq!(
        deployment.list(&ports),
        ListType::Map(vec!["containerPort".to_owned(), "protocol".to_owned()])
    );
    let args = [containers.as_slice(), &["*", "args"]].concat();
    assert_eq!(deployment.list(&args), ListType::Atomic);
    assert!(deployment.is_atomic_object(&["spec", "selector"]));
    assert_eq!(
        TypeSchema::built_in("CustomResourceDefinition").list(&["spec", "versions"]),
        ListType::Atomic
    );
}

fn arbitrary_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z]{0,4}".prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        let name = prop_oneof![
            Just("spec"),
            Just("n"),
            Just("d"),
            Just("l"),
            Just("set"),
            Just("k"),
            Just("x")
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.prop_map(str::to_owned), inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn pruning_and_defaulting_twice_is_the_same_as_once(mut object in arbitrary_json()) {
        let schema = probe();
        schema.prune(&mut object);
        schema.default(&mut object);
        let once = object.clone();
        prop_assert!(schema.prune(&mut object).is_empty());
        schema.default(&mut object);
        prop_assert_eq!(object, once);
    }

    #[test]
    fn validation_never_panics_and_an_unchanged_object_is_never_wrong(object in arbitrary_json()) {
        let _ = probe().validate(&object, None);
        let text = json!({"type": "string"});
        let errors = super::validation::validate(&text, &object, Some(&object));
        prop_assert!(errors.is_empty());
    }
}
