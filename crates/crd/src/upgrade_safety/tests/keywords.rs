//! Findings about a change of one property.

use super::*;

/// Returns the findings for a change of one property from `old` to `new`, both in YAML: path below it, rule
/// and message.
fn findings_of_property(old: &str, new: &str) -> String {
    let schema = |property: &str| crd(&format!("{{type: object, properties: {{x: {property}}}}}"));
    let lines = compared(&schema(old), &schema(new));
    let lines: Vec<&str> = lines
        .iter()
        .map(|line| {
            let rest = line.strip_prefix("widgets.example.com v1 ^.x");
            rest.map_or(line.as_str(), str::trim_start)
        })
        .collect();
    lines.join("\n")
}

/// Compares each old with its new property, and the findings with the expected ones.
fn expect(cases: &[(&str, &str, &str)]) {
    for (old, new, expected) in cases {
        assert_eq!(findings_of_property(old, new), *expected, "{old} to {new}");
    }
}

/// Expects that no rule covers the change from each old to its new property, and that this is reported with
/// `change`.
fn expect_unhandled(cases: &[(&str, &str, &str)]) {
    for (old, new, change) in cases {
        let expected = format!("unhandled: unhandled changes found ({change})");
        assert_eq!(findings_of_property(old, new), expected, "{old} to {new}");
    }
}

/// Expects no finding for the change from each old to its new property.
fn expect_nothing(cases: &[(&str, &str)]) {
    for (old, new) in cases {
        assert_eq!(findings_of_property(old, new), "", "{old} to {new}");
    }
}

#[test]
fn each_value_rule_reports_the_change() {
    expect(&[
        (
            "{type: string}",
            "{type: integer}",
            r#"type: type changed : "string" -> "integer""#,
        ),
        (
            "{type: object, required: [a]}",
            "{type: object, required: [c, a, b]}",
            "required: new required fields: [b, c]",
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
        (
            "{x-kubernetes-map-type: granular}",
            "{x-kubernetes-map-type: atomic}",
            r#"mapType: x-kubernetes-map-type changed : "" -> "atomic" (warning)"#,
        ),
    ]);
}

#[test]
fn new_and_tighter_bounds_are_reported_with_values() {
    let bounds = [
        ("minimum", "minLength", "minItems", "minProperties"),
        ("maximum", "maxLength", "maxItems", "maxProperties"),
    ];
    for (what, length, items, properties) in bounds {
        let (moved, old, new) = match what {
            "minimum" => ("increased", 1, 2),
            _ => ("decreased", 2, 1),
        };
        for keyword in [what, length, items, properties] {
            let (one, other) = (format!("{{{keyword}: {old}}}"), format!("{{{keyword}: {new}}}"));
            expect(&[
                (
                    "{}",
                    &format!("{{{keyword}: 0}}"),
                    &format!("{keyword}: {what} constraint added when there was none previously : 0"),
                ),
                (
                    &one,
                    &other,
                    &format!("{keyword}: {what} {moved} : {old} -> {new}"),
                ),
                (&other, &one, ""),
                (&one, "{}", ""),
            ]);
        }
    }
    expect(&[
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
    ]);
}

#[test]
fn loosened_and_equivalent_schemas_are_not_reported() {
    expect_nothing(&[
        (
            "{type: object, required: [a, b]}",
            "{type: object, required: [b]}",
        ),
        ("{enum: [a, b]}", "{enum: [c, b, a]}"),
        ("{enum: [a, b]}", "{}"),
        ("{oneOf: [{required: [a]}]}", "{}"),
        ("{default: {a: 1, b: 2}}", "{default: {b: 2.0, a: 1}}"),
        ("{minimum: 2}", "{minimum: 2.0}"),
        ("{nullable: false}", "{}"),
        (
            "{description: a, title: b, example: 1}",
            "{description: c, externalDocs: {url: d}}",
        ),
        (
            "{anyOf: [{minimum: 1}, {maximum: 5}]}",
            "{anyOf: [{maximum: 5}, {minimum: 1}]}",
        ),
        (
            "{x-kubernetes-validations: [{rule: a, message: x}]}",
            "{x-kubernetes-validations: [{rule: a, message: y}]}",
        ),
        ("{x-kubernetes-list-type: atomic}", "{}"),
        ("{}", "{x-kubernetes-map-type: granular}"),
        ("{deprecated: true, x-mine: 1}", "{readOnly: true}"),
    ]);
}

#[test]
fn a_keyword_without_a_rule_is_reported_as_unhandled() {
    expect_unhandled(&[
        (
            "{type: string}",
            "{x-kubernetes-preserve-unknown-fields: true, type: string}",
            "x-kubernetes-preserve-unknown-fields false -> true",
        ),
        ("{}", "{format: email}", r#"format "" -> "email""#),
        (
            "{format: email, uniqueItems: true}",
            "{multipleOf: 2}",
            r#"format "email" -> ""; multipleOf none -> 2; uniqueItems true -> false"#,
        ),
        (
            "{minimum: 1}",
            "{minimum: 1, exclusiveMinimum: true}",
            "exclusiveMinimum false -> true",
        ),
        (
            "{}",
            "{anyOf: [{required: [a]}]}",
            r#"anyOf [] -> [{"required":["a"]}]"#,
        ),
        (
            "{anyOf: [{minimum: 1}]}",
            "{anyOf: [{minimum: 2}]}",
            r#"anyOf [{"minimum":1}] -> [{"minimum":2}]"#,
        ),
        ("{allOf: [{minimum: 1}]}", "{}", r#"allOf [{"minimum":1}] -> []"#),
        ("{}", "{not: {}}", "not none -> {}"),
        (
            "{not: {properties: {description: {}}}}",
            "{not: {properties: {}}}",
            r#"not {"properties":{"description":{}}} -> {"properties":{}}"#,
        ),
        (
            "{}",
            "{x-kubernetes-validations: [{rule: a, message: y}]}",
            r#"x-kubernetes-validations [] -> [{"rule":"a"}]"#,
        ),
        (
            "{x-kubernetes-list-type: atomic}",
            "{x-kubernetes-list-type: set}",
            r#"x-kubernetes-list-type "" -> "set""#,
        ),
        (
            "{x-kubernetes-of-a-release-to-come: 1}",
            "{}",
            "x-kubernetes-of-a-release-to-come 1 -> none",
        ),
    ]);
}

#[test]
fn values_that_are_not_schemas_are_compared_literally() {
    expect_nothing(&[("5", "5")]);
    expect_unhandled(&[
        ("5", "{}", "schema 5 -> {}"),
        ("{properties: 5}", "{properties: {a: {}}}", "properties 5 -> none"),
        ("{items: [{}]}", "{items: {}}", "items [{}] -> []"),
        ("{type: [a]}", "{type: a}", r#"type ["a"] -> "a""#),
        (
            "{required: {a: 1}}",
            "{required: [a]}",
            r#"required {"a":1} -> ["a"]"#,
        ),
        ("{required: [1]}", "{required: [1, 2]}", "required [1] -> [1,2]"),
        ("{minimum: a}", "{minimum: 1}", r#"minimum "a" -> 1"#),
        ("{nullable: maybe}", "{}", r#"nullable "maybe" -> """#),
        ("{enum: a}", "{enum: [a]}", r#"enum "a" -> ["a"]"#),
        ("{pattern: 1}", "{}", "pattern 1 -> none"),
        ("{oneOf: 1}", "{oneOf: [1]}", "oneOf 1 -> [1]"),
    ]);
}

#[test]
fn removed_fields_are_found_at_any_depth() {
    for (old, new, place) in [
        ("{properties: {a: {}}}", "{}", ".a"),
        (
            "{properties: {a: {properties: {b: {}}}}}",
            "{properties: {b: {}}}",
            ".a",
        ),
        ("{items: {properties: {a: {}}}}", "{items: {}}", ".items.a"),
        ("{items: {}}", "{}", ".items"),
        (
            "{additionalProperties: true}",
            "{additionalProperties: false}",
            ".additionalProperties",
        ),
        ("{properties: {'a b.c': {}}}", "{}", "['a b.c']"),
    ] {
        let expected = format!("{place} existingFieldRemoval: removed field : v1.^.x{place}");
        assert_eq!(findings_of_property(old, new), expected, "{old} to {new}");
    }
}

#[test]
fn nested_properties_are_compared() {
    expect(&[
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
    ]);
    expect_nothing(&[
        ("{}", "{properties: {new: {type: string, minLength: 3}}}"),
        (
            "{properties: {a: {}}, items: {}}",
            "{items: {}, properties: {a: {}}}",
        ),
    ]);
}
