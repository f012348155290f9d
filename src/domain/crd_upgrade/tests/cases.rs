//! What each rule says of small changes.

use serde_json::json;

use super::*;
use crate::domain::crd_upgrade::{Enforcement, Exception, Rule, compare_all, from_file};

/// What is said of the change of one property from `old` to `new`, both in YAML.
fn of_property(old: &str, new: &str) -> Vec<String> {
    let schema = |property: &str| definition(&format!("{{type: object, properties: {{x: {property}}}}}"));
    compared(&schema(old), &schema(new))
        .iter()
        .map(|line| {
            line.strip_prefix("widgets.example.com v1 ^.x")
                .map_or(line.clone(), |rest| rest.trim_start().to_owned())
        })
        .collect()
}

#[test]
fn each_rule_about_a_property_says_what_has_changed() {
    for (old, new, expected) in [
        (
            "{type: string}",
            "{type: integer}",
            r#"type: type changed : "string" -> "integer""#,
        ),
        (
            "{type: string}",
            "{x-kubernetes-preserve-unknown-fields: true, type: string}",
            "unhandled: unhandled changes found (x-kubernetes-preserve-unknown-fields false -> true)",
        ),
        (
            "{type: object, required: [a]}",
            "{type: object, required: [c, a, b]}",
            "required: new required fields: [b, c]",
        ),
        (
            "{type: object, required: [a, b]}",
            "{type: object, required: [b]}",
            "",
        ),
        (
            "{type: integer}",
            "{type: integer, default: 1}",
            "default: default added when there was none previously : 1",
        ),
        (
            "{type: integer, default: 1}",
            "{type: integer}",
            "default: default value removed : 1",
        ),
        (
            "{default: {a: 1, b: 2}}",
            "{default: {b: 2, a: 3}}",
            r#"default: default value changed : {"a":1,"b":2} -> {"a":3,"b":2}"#,
        ),
        ("{default: {a: 1, b: 2}}", "{default: {b: 2.0, a: 1}}", ""),
        (
            "{default: false}",
            "{default: true}",
            "default: default value changed : false -> true",
        ),
        (
            "{type: string}",
            "{type: string, enum: [a, b]}",
            r#"enum: enum constraint added when there was none previously : ["a", "b"]"#,
        ),
        (
            "{enum: [a, b, c]}",
            "{enum: [c, d]}",
            r#"enum: allowed enum values removed : ["a", "b"]"#,
        ),
        ("{enum: [a, b]}", "{enum: [c, b, a]}", ""),
        ("{enum: [a, b]}", "{}", ""),
        (
            "{}",
            "{minimum: 0}",
            "minimum: minimum constraint added when there was none previously : 0",
        ),
        (
            "{minimum: 1}",
            "{minimum: 1.5}",
            "minimum: minimum increased : 1 -> 1.5",
        ),
        (
            "{minimum: -9223372036854775808}",
            "{minimum: 9223372036854775807}",
            "minimum: minimum increased : -9223372036854775808 -> 9223372036854775807",
        ),
        ("{minimum: 2}", "{minimum: 1}", ""),
        ("{minimum: 2}", "{}", ""),
        ("{minimum: 2}", "{minimum: 2.0}", ""),
        (
            "{}",
            "{minItems: 1}",
            "minItems: minimum constraint added when there was none previously : 1",
        ),
        (
            "{minLength: 1}",
            "{minLength: 2}",
            "minLength: minimum increased : 1 -> 2",
        ),
        (
            "{minProperties: 1}",
            "{minProperties: 2}",
            "minProperties: minimum increased : 1 -> 2",
        ),
        (
            "{}",
            "{maximum: 0}",
            "maximum: maximum constraint added when there was none previously : 0",
        ),
        (
            "{maximum: 3}",
            "{maximum: 2}",
            "maximum: maximum decreased : 3 -> 2",
        ),
        ("{maximum: 2}", "{maximum: 3}", ""),
        (
            "{maxItems: 3}",
            "{maxItems: 2}",
            "maxItems: maximum decreased : 3 -> 2",
        ),
        ("{maxLength: 3}", "{}", ""),
        (
            "{maxLength: 3}",
            "{maxLength: 2}",
            "maxLength: maximum decreased : 3 -> 2",
        ),
        (
            "{}",
            "{maxProperties: 2}",
            "maxProperties: maximum constraint added when there was none previously : 2",
        ),
        ("{}", "{pattern: a}", r#"pattern: pattern added : "" -> "a""#),
        (
            "{pattern: a}",
            "{pattern: b}",
            r#"pattern: pattern changed : "a" -> "b""#,
        ),
        (
            "{pattern: a}",
            "{pattern: ''}",
            r#"pattern: pattern removed : "a" -> """#,
        ),
        (
            "{}",
            "{nullable: true}",
            "nullable: nullable added : false -> true",
        ),
        (
            "{nullable: true}",
            "{nullable: false}",
            "nullable: nullable removed : true -> false",
        ),
        ("{nullable: false}", "{}", ""),
        (
            "{}",
            "{oneOf: [{required: [a]}]}",
            r#"oneOf: oneOf constraint added when there was none previously : [{"required":["a"]}]"#,
        ),
        (
            "{oneOf: [{required: [a]}, {required: [b]}]}",
            "{oneOf: [{required: [b], description: new}]}",
            r#"oneOf: allowed oneOf schemas removed: [{"required":["a"]}]"#,
        ),
        (
            "{oneOf: [{required: [a]}]}",
            "{oneOf: [{required: [b]}, {required: [a]}]}",
            r#"oneOf: allowed oneOf schemas added: [{"required":["b"]}]"#,
        ),
        ("{oneOf: [{required: [a]}]}", "{}", ""),
        (
            "{description: a, title: b, example: 1}",
            "{description: c, externalDocs: {url: d}}",
            "",
        ),
        (
            "{}",
            "{format: email}",
            r#"unhandled: unhandled changes found (format "" -> "email")"#,
        ),
        (
            "{format: email, uniqueItems: true}",
            "{multipleOf: 2}",
            r#"unhandled: unhandled changes found (format "email" -> ""; multipleOf none -> 2; uniqueItems true -> false)"#,
        ),
        (
            "{minimum: 1}",
            "{minimum: 1, exclusiveMinimum: true}",
            "unhandled: unhandled changes found (exclusiveMinimum false -> true)",
        ),
        (
            "{}",
            "{anyOf: [{required: [a]}]}",
            r#"unhandled: unhandled changes found (anyOf [] -> [{"required":["a"]}])"#,
        ),
        (
            "{anyOf: [{minimum: 1}, {maximum: 5}]}",
            "{anyOf: [{maximum: 5}, {minimum: 1}]}",
            "",
        ),
        (
            "{anyOf: [{minimum: 1}]}",
            "{anyOf: [{minimum: 2}]}",
            r#"unhandled: unhandled changes found (anyOf [{"minimum":1}] -> [{"minimum":2}])"#,
        ),
        (
            "{allOf: [{minimum: 1}]}",
            "{}",
            r#"unhandled: unhandled changes found (allOf [{"minimum":1}] -> [])"#,
        ),
        (
            "{}",
            "{not: {}}",
            "unhandled: unhandled changes found (not none -> {})",
        ),
        (
            "{not: {properties: {description: {}}}}",
            "{not: {properties: {}}}",
            r#"unhandled: unhandled changes found (not {"properties":{"description":{}}} -> {"properties":{}})"#,
        ),
        (
            "{x-kubernetes-validations: [{rule: a, message: x}]}",
            "{x-kubernetes-validations: [{rule: a, message: y}]}",
            "",
        ),
        (
            "{}",
            "{x-kubernetes-validations: [{rule: a, message: y}]}",
            r#"unhandled: unhandled changes found (x-kubernetes-validations [] -> [{"rule":"a"}])"#,
        ),
        ("{x-kubernetes-list-type: atomic}", "{}", ""),
        (
            "{x-kubernetes-list-type: atomic}",
            "{x-kubernetes-list-type: set}",
            r#"unhandled: unhandled changes found (x-kubernetes-list-type "" -> "set")"#,
        ),
        ("{}", "{x-kubernetes-map-type: granular}", ""),
        (
            "{x-kubernetes-map-type: granular}",
            "{x-kubernetes-map-type: atomic}",
            r#"mapType: x-kubernetes-map-type changed : "" -> "atomic" (warning)"#,
        ),
        (
            "{x-kubernetes-of-a-release-to-come: 1}",
            "{}",
            "unhandled: unhandled changes found (x-kubernetes-of-a-release-to-come 1 -> none)",
        ),
        ("{deprecated: true, x-mine: 1}", "{readOnly: true}", ""),
    ] {
        assert_eq!(of_property(old, new).join("\n"), expected, "{old} to {new}");
    }
}

#[test]
fn fields_are_found_wherever_they_are() {
    for (old, new, expected) in [
        (
            "{properties: {a: {}}}",
            "{}",
            ".a existingFieldRemoval: removed field : v1.^.x.a",
        ),
        (
            "{properties: {a: {properties: {b: {}}}}}",
            "{properties: {b: {}}}",
            ".a existingFieldRemoval: removed field : v1.^.x.a",
        ),
        (
            "{items: {properties: {a: {}}}}",
            "{items: {}}",
            ".items.a existingFieldRemoval: removed field : v1.^.x.items.a",
        ),
        (
            "{items: {}}",
            "{}",
            ".items existingFieldRemoval: removed field : v1.^.x.items",
        ),
        (
            "{additionalProperties: true}",
            "{additionalProperties: false}",
            ".additionalProperties existingFieldRemoval: removed field : v1.^.x.additionalProperties",
        ),
        (
            "{additionalProperties: true}",
            "{additionalProperties: {type: string}}",
            r#".additionalProperties type: type changed : "" -> "string""#,
        ),
        (
            "{additionalProperties: {maxLength: 3}}",
            "{additionalProperties: {maxLength: 2}}",
            ".additionalProperties maxLength: maximum decreased : 3 -> 2",
        ),
        (
            "{properties: {'a b.c': {}}}",
            "{}",
            "['a b.c'] existingFieldRemoval: removed field : v1.^.x['a b.c']",
        ),
        ("{}", "{properties: {new: {type: string, minLength: 3}}}", ""),
        (
            "{properties: {a: {}}, items: {}}",
            "{items: {}, properties: {a: {}}}",
            "",
        ),
    ] {
        assert_eq!(of_property(old, new).join("\n"), expected, "{old} to {new}");
    }
}

#[test]
fn what_is_no_schema_is_compared_as_it_is() {
    for (old, new, expected) in [
        ("5", "5", ""),
        ("5", "{}", "unhandled: unhandled changes found (schema 5 -> {})"),
        (
            "{properties: 5}",
            "{properties: {a: {}}}",
            "unhandled: unhandled changes found (properties 5 -> none)",
        ),
        (
            "{items: [{}]}",
            "{items: {}}",
            "unhandled: unhandled changes found (items [{}] -> [])",
        ),
        (
            "{type: [a]}",
            "{type: a}",
            r#"unhandled: unhandled changes found (type ["a"] -> "a")"#,
        ),
        (
            "{required: {a: 1}}",
            "{required: [a]}",
            r#"unhandled: unhandled changes found (required {"a":1} -> ["a"])"#,
        ),
        (
            "{required: [1]}",
            "{required: [1, 2]}",
            "unhandled: unhandled changes found (required [1] -> [1,2])",
        ),
        (
            "{minimum: a}",
            "{minimum: 1}",
            r#"unhandled: unhandled changes found (minimum "a" -> 1)"#,
        ),
        (
            "{nullable: maybe}",
            "{}",
            r#"unhandled: unhandled changes found (nullable "maybe" -> "")"#,
        ),
        (
            "{enum: a}",
            "{enum: [a]}",
            r#"unhandled: unhandled changes found (enum "a" -> ["a"])"#,
        ),
        (
            "{pattern: 1}",
            "{}",
            "unhandled: unhandled changes found (pattern 1 -> none)",
        ),
        (
            "{oneOf: 1}",
            "{oneOf: [1]}",
            "unhandled: unhandled changes found (oneOf 1 -> [1])",
        ),
    ] {
        assert_eq!(of_property(old, new).join("\n"), expected, "{old} to {new}");
    }
}

/// A definition of the given versions; those with a `+` are served.
fn with_versions(scope: &str, versions: &[(&str, &str)], stored: &[&str]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|(name, schema)| {
            json!({
                "name": name.trim_start_matches('+'), "served": name.starts_with('+'), "storage": false,
                "schema": {"openAPIV3Schema": document(schema)},
            })
        })
        .collect();
    let mut definition = definition("{}");
    definition["spec"]["scope"] = scope.into();
    definition["spec"]["versions"] = versions.into();
    definition["status"] = json!({"storedVersions": stored});
    definition
}

#[test]
fn the_definition_as_a_whole_has_rules_of_its_own() {
    let old = with_versions(
        "Namespaced",
        &[("+v1", "{}"), ("+v1beta1", "{}"), ("v1alpha1", "{}")],
        &["v1alpha1", "v1beta1"],
    );
    let new = with_versions("Cluster", &[("v1", "{}"), ("+v2", "{}")], &[]);
    assert_eq!(
        compared(&old, &new),
        [
            "widgets.example.com - - scope: scope changed : \"Namespaced\" -> \"Cluster\"",
            "widgets.example.com - - storedVersionRemoval: stored versions removed : [v1alpha1, v1beta1]",
            "widgets.example.com v1 - servedVersionRemoval: version no longer served : v1 (warning)",
            "widgets.example.com v1beta1 - servedVersionRemoval: served version removed : v1beta1 (warning)",
        ]
    );
}

#[test]
fn what_a_file_does_not_say_is_stored_is_the_storage_version() {
    let old = definition("{}");
    let mut new = definition("{}");
    new["spec"]["versions"][0]["name"] = "v2".into();
    assert_eq!(
        compared(&old, &new)[0],
        "widgets.example.com - - storedVersionRemoval: stored versions removed : [v1]"
    );
}

#[test]
fn what_a_version_has_beside_its_schema_stays() {
    let with = |version: Value, preserve: bool| {
        let mut definition = definition("{}");
        definition["spec"]["preserveUnknownFields"] = preserve.into();
        for (name, value) in version.as_object().unwrap() {
            definition["spec"]["versions"][0][name] = value.clone();
        }
        definition
    };
    let all = json!({
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".a"}},
        "selectableFields": [{"jsonPath": ".a"}],
    });
    assert_eq!(
        compared(&with(all.clone(), true), &with(json!({}), false)),
        [
            "widgets.example.com - - unhandled: unhandled changes found (spec.preserveUnknownFields true -> false)",
            "widgets.example.com v1 - unhandled: unhandled changes found (selectableFields [{\"jsonPath\":\".a\"}] -> [])",
            "widgets.example.com v1 - unhandled: unhandled changes found (subresources.scale {\"specReplicasPath\":\".a\"} -> none)",
            "widgets.example.com v1 - unhandled: unhandled changes found (subresources.status {} -> none)",
        ]
    );
    assert_eq!(
        compared(&with(json!({}), false), &with(all, false)),
        ["widgets.example.com v1 - unhandled: unhandled changes found (subresources.status none -> {})"]
    );
}

#[test]
fn versions_that_are_served_together_without_conversion_are_compared_from_old_to_new() {
    const WIDE: &str = "{properties: {a: {maxLength: 9}, b: {}}}";
    const NARROW: &str = "{properties: {a: {maxLength: 5}}}";
    let one = with_versions("Namespaced", &[("+v1beta1", WIDE), ("v1", NARROW)], &["v1beta1"]);
    let mut both = with_versions("Namespaced", &[("+v1", NARROW), ("+v1beta1", WIDE)], &["v1beta1"]);
    let expected = [
        "widgets.example.com v1beta1->v1 ^.a maxLength: maximum decreased : 9 -> 5",
        "widgets.example.com v1beta1->v1 ^.b existingFieldRemoval: removed field : v1.^.b",
    ];
    assert_eq!(compared(&one, &both), expected);
    // What was so before does not get worse.
    assert_eq!(compared(&both, &both), [""; 0]);
    // A webhook translates.
    let unconverted = both.clone();
    both["spec"]["conversion"] = json!({"strategy": "Webhook"});
    assert_eq!(compared(&one, &both), [""; 0]);
    // Where it goes, nobody does.
    assert_eq!(compared(&both, &unconverted), expected);
}

#[test]
fn exceptions_decide_by_version_and_field() {
    let old = definition("{properties: {a: {type: string}, b: {type: string}}}");
    let new = definition("{properties: {a: {type: integer}}}");
    let policy = |exceptions: &str| Policy {
        lenient: false,
        exceptions: Exception::parse("e", exceptions.as_bytes()).unwrap(),
    };
    let enforcements = |exceptions: &str| -> Vec<(Rule, Enforcement)> {
        compare("widgets.example.com", &old, &new, &policy(exceptions))
            .iter()
            .map(|finding| (finding.rule, finding.enforcement))
            .collect()
    };
    use Enforcement::{Strict, Warn};
    use Rule::{ExistingFieldRemoval, Type};
    assert_eq!(
        enforcements("[]"),
        [(Type, Strict), (ExistingFieldRemoval, Strict)]
    );
    assert_eq!(
        enforcements("[{field: ^.a, enforcement: Warn}]"),
        [(Type, Warn), (ExistingFieldRemoval, Strict)]
    );
    assert_eq!(
        enforcements("[{field: ^.a, enforcement: Warn}, {rule: existingFieldRemoval, enforcement: None}]"),
        [(Type, Warn)]
    );
    assert_eq!(enforcements("[{field: ^, version: v1, enforcement: None}]"), []);
    // One that names nothing is about nothing.
    let nothing = Exception {
        crd: None,
        version: None,
        field: None,
        rule: None,
        enforcement: Enforcement::None,
    };
    let policy_of_nothing = Policy {
        lenient: false,
        exceptions: vec![nothing],
    };
    assert_eq!(
        compare("widgets.example.com", &old, &new, &policy_of_nothing).len(),
        2
    );
    let lenient = Policy {
        lenient: true,
        exceptions: policy("[{rule: type, enforcement: Warn}]").exceptions,
    };
    assert_eq!(
        lines(&compare("widgets.example.com", &old, &new, &lenient)),
        ["widgets.example.com v1 ^.a type: type changed : \"string\" -> \"integer\" (warning)"]
    );
}

#[test]
fn a_definition_that_goes_is_reported_and_one_that_comes_is_not() {
    let only: Definitions = [("widgets.example.com".to_owned(), definition("{}"))].into();
    let none = Definitions::new();
    assert_eq!(
        lines(&compare_all(&only, &none, &strict())),
        ["widgets.example.com - - crdRemoval: the CustomResourceDefinition is removed"]
    );
    assert_eq!(compare_all(&none, &only, &strict()), []);
}

#[test]
fn files_that_cannot_be_compared_say_where_and_why() {
    for text in [
        "a: [",
        "{kind: Service, apiVersion: v1}",
        "kind: CustomResourceDefinition",
        "{kind: CustomResourceDefinition, apiVersion: apiextensions.k8s.io/v1beta1, metadata: {name: a}}",
        "{kind: CustomResourceDefinition, apiVersion: apiextensions.k8s.io/v1, metadata: {name: 1}, spec: {versions: {}}}",
        "{kind: List, items: 1}",
        "{kind: CustomResourceDefinition, apiVersion: apiextensions.k8s.io/v1, metadata: {name: a}, spec: {versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {properties: 5}}}]}}",
    ] {
        let problems = from_file("crd.yaml", text.as_bytes()).unwrap_err();
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(format!("{text}\n{}", problems.join("\n")));
    }
}
