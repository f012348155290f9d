use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;
use crate::{
    AdmissionAttributes, Answers, CompiledPolicy, Engines, EvaluationBudget, PolicyEvaluation, PolicySet,
    RuleEngine, RuleSource,
    api::{CelOverride, CelValidationRule, MatchCondition},
    tests::policy,
};

const NOTHING: Value = Value::Null;

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "a", "namespace": "n", "labels": {"example.com/app": "x"}},
        "spec": {"priority": 7, "share": 0.5, "containers": [
            {"name": "c", "image": "mirror/c:1", "env": [{"name": "A", "value": "1"}]},
            {"name": "d", "image": "other/d:1"},
        ]},
    })
}

fn run(source: RuleSource<'_>, object: &Value) -> Result<Value, String> {
    let program = CelEngine.compile(source).map_err(|problems| {
        problems
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("; ")
    })?;
    let request = json!({"operation": "UPDATE", "userInfo": {"username": "me", "groups": ["a"]}});
    let old = json!({"metadata": {"name": "old"}});
    let inputs = [
        ("object", object),
        ("oldObject", &old),
        ("request", &request),
        ("namespaceObject", &NOTHING),
    ];
    let value = program.evaluate(&inputs, &EvaluationBudget::default());
    value
        .map(Option::unwrap_or_default)
        .map_err(|error| error.to_string())
}

fn holds(expression: &str) -> Result<bool, String> {
    let condition = MatchCondition {
        name: "c".into(),
        expression: expression.into(),
    };
    run(RuleSource::CelConditions(&[condition]), &pod()).map(|met| met.as_bool().unwrap())
}

fn validated(rule: Value) -> Result<Value, String> {
    let rule: CelValidationRule = serde_json::from_value(rule).unwrap();
    run(RuleSource::CelValidation(&rule), &pod())
}

fn overridden(expression: &str) -> Result<Value, String> {
    let rule = CelOverride {
        variables: Vec::new(),
        expression: expression.into(),
    };
    run(RuleSource::CelOverride(&rule), &pod())
}

#[test]
fn expressions_have_the_variables_of_validating_admission_policy() {
    for (expression, expected) in [
        ("object.spec.priority == 7 && object.spec.priority > 6", true),
        ("object.spec.share < 1.0", true),
        ("oldObject.metadata.name == 'old'", true),
        (
            "request.operation == 'UPDATE' && 'a' in request.userInfo.groups",
            true,
        ),
        ("namespaceObject == null", true),
        ("object.metadata.labels['example.com/app'] == 'x'", true),
        ("object.metadata.__namespace__ == 'n'", true),
        ("has(object.spec.nodeName)", false),
        (
            "object.spec.containers.all(c, c.image.startsWith('mirror/'))",
            false,
        ),
        (
            "object.spec.containers.exists(c, has(c.env) && c.env.exists(e, e.name == 'A'))",
            true,
        ),
        ("object.spec.containers.map(c, c.name) == ['c', 'd']", true),
        ("quantity('1500m').isGreaterThan(quantity('1'))", true),
        ("object.metadata.name.matches('^[a-z]+$')", true),
        (
            "math.greatest(1, 2) == 2 && size(object.spec.containers) == 2",
            true,
        ),
        ("url('https://a.b/c').getHost() == 'a.b'", true),
        ("'%s-%d'.format(['a', 1]) == 'a-1'", true),
    ] {
        assert_eq!(holds(expression), Ok(expected), "{expression}");
    }
}

#[test]
fn problems_of_expressions_have_line_and_column() {
    for (expression, expected) in [
        (
            "object.spec.\n  replicas >",
            "[0].expression: line 2, column 13: ",
        ),
        (
            "object.a == params.b &&\n  subject.c",
            "[0].expression: line 1, column 13: undeclared reference to params; there are object, oldObject, request, namespaceObject; [0].expression: line 2, column 3: undeclared reference to subject; ",
        ),
        (
            "objekt",
            "[0].expression: line 1, column 1: undeclared reference to objekt; there are object, oldObject, request, namespaceObject",
        ),
        (
            "object.a.frobnicate()",
            "[0].expression: line 1, column 10: undeclared reference to function frobnicate",
        ),
        (
            "variables.a",
            "[0].expression: line 1, column 1: variables is undeclared: the rule has none before this expression",
        ),
        (
            "Pod{a: 1} == object",
            "[0].expression: line 1, column 1: undeclared type Pod; there are JSONPatch and Object",
        ),
        ("", "[0].expression: must not be empty"),
    ] {
        let error = holds(expression).unwrap_err();
        assert!(error.starts_with(expected), "{expression}: {error}");
    }
}

#[test]
fn all_problems_of_a_rule_are_reported_at_once() {
    let error = validated(json!({
        "variables": [{"name": "a-b", "expression": "x"}, {"name": "c", "expression": "variables.d"}, {"name": "c", "expression": "1"}],
        "validations": [{"expression": "y", "messageExpression": "z"}, {"expression": "variables.none"}],
    }))
    .unwrap_err();
    for expected in [
        "variables[0].name: must be an identifier of CEL",
        "variables[0].expression: line 1, column 1: undeclared reference to x",
        "variables[1].expression: line 1, column 11: undeclared reference to variables.d",
        "variables[2].name: duplicate \"c\"",
        "validations[0].expression: line 1, column 1: undeclared reference to y",
        "validations[0].messageExpression: line 1, column 1: undeclared reference to z",
        "validations[1].expression: line 1, column 11: undeclared reference to variables.none",
    ] {
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn a_false_condition_takes_precedence_over_a_failing_one() {
    let conditions = |expressions: &[&str]| -> Vec<_> {
        let condition = |expression: &&str| MatchCondition {
            name: format!("named {expression}"),
            expression: (*expression).into(),
        };
        expressions.iter().map(condition).collect()
    };
    let met = |expressions: &[&str]| run(RuleSource::CelConditions(&conditions(expressions)), &pod());
    assert_eq!(met(&["true", "object.spec.priority == 7"]), Ok(json!(true)));
    assert_eq!(met(&["object.none", "false"]), Ok(json!(false)));
    assert_eq!(
        met(&["object.none", "true"]),
        Err("named object.none: No such key: none".into())
    );
    assert_eq!(met(&["1"]), Err("named 1: is int, not true or false".into()));
}

#[test]
fn validations_report_failed_expressions() {
    let rule = json!({
        "variables": [
            {"name": "foreign", "expression": "object.spec.containers.filter(c, !c.image.startsWith('mirror/'))"},
            {"name": "names", "expression": "variables.foreign.map(c, c.name)"},
            {"name": "broken", "expression": "object.none"},
        ],
        "validations": [
            {"expression": "size(variables.names) == 0", "messageExpression": "'use the mirror: ' + variables.names.join(', ')", "message": "unused"},
            {"expression": "object.spec.priority < 5", "message": "priority is too high"},
            {"expression": "object.spec.priority < 6", "messageExpression": "object.none"},
            {"expression": "true || variables.broken"},
        ],
    });
    assert_eq!(
        validated(rule),
        Ok(
            json!({"valid": false, "reason": "use the mirror: d; priority is too high; failed expression: object.spec.priority < 6"})
        )
    );
    let rule = json!({"variables": [{"name": "broken", "expression": "object.none"}], "validations": [{"expression": "variables.broken"}]});
    assert_eq!(
        validated(rule),
        Err("validations[0]: variables.broken: No such key: none".into())
    );
    assert_eq!(
        validated(json!({"validations": [{"expression": "true"}]})),
        Ok(json!({"valid": true, "reason": ""}))
    );
}

#[test]
fn overrides_yield_operations_as_in_mutating_admission_policy() {
    let expected = json!([{"op": "add", "path": "/metadata/labels/a.b~1c", "value": {"x": 1}}]);
    for expression in [
        "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a.b/c'), value: Object{x: 1}}]",
        "[{'op': 'add', 'path': '/metadata/labels/a.b~1c', 'value': {'x': 1}}]",
    ] {
        assert_eq!(overridden(expression), Ok(expected.clone()));
    }
    assert_eq!(
        overridden(
            "has(object.spec.nodeName) ? [] : [JSONPatch{op: 'replace', path: '/spec/nodeName', value: object.metadata.name}]"
        ),
        Ok(json!([{"op": "replace", "path": "/spec/nodeName", "value": "a"}]))
    );
    assert_eq!(
        overridden("[timestamp('2024-01-01T00:00:00Z')]"),
        Err("timestamp cannot be represented in JSON: use string()".into())
    );
}

#[test]
fn a_policy_in_cel_is_evaluated_end_to_end() {
    let spec = json!({
        "matchConditions": [{"name": "pods", "expression": "object.kind == 'Pod'"}],
        "overrideRules": [{"overriders": {"cel": {
            "variables": [{"name": "image", "expression": "object.spec.containers[1].image"}],
            "expression": "[JSONPatch{op: 'replace', path: '/spec/containers/1/image', value: 'mirror/' + variables.image}]",
        }}}],
    });
    let compiled =
        CompiledPolicy::compile(&policy("ClusterOverridePolicy", "a", spec), &Engines::built_in()).unwrap();
    assert_eq!(compiled.problems(), []);
    let set = PolicySet::new([compiled.into()]);
    let pod = pod();
    let attributes = AdmissionAttributes::create(&pod);
    let evaluation = set.override_object(&attributes, &Answers::default(), &EvaluationBudget::default());
    let PolicyEvaluation::Done(outcome) = evaluation else {
        panic!()
    };
    assert_eq!(outcome.refusal, None);
    assert_eq!(
        outcome.object["spec"]["containers"][1]["image"],
        "mirror/other/d:1"
    );
}

#[test]
fn a_deleted_object_is_null_as_in_validating_admission_policy() {
    let rules = json!([{"cel": {"validations": [{"expression": "object == null && oldObject.metadata.name == 'b'", "message": "is not b"}]}}]);
    let spec = json!({"validateRules": rules});
    let compiled =
        CompiledPolicy::compile(&policy("ClusterValidatePolicy", "a", spec), &Engines::built_in()).unwrap();
    let set = PolicySet::new([compiled.into()]);
    for (name, allowed) in [("a", false), ("b", true)] {
        let request = json!({"operation": "DELETE", "oldObject": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}});
        let attributes = AdmissionAttributes::from_request(&request, None).unwrap();
        let evaluation = set.validate(&attributes, &Answers::default(), &EvaluationBudget::default());
        let PolicyEvaluation::Done(outcome) = evaluation else {
            panic!()
        };
        assert_eq!(outcome.is_allowed(), allowed, "{outcome:?}");
    }
}

#[test]
fn hostile_expressions_are_refused_at_compile_time() {
    for (expression, expected) in [
        (
            "(".repeat(4000) + "1" + &")".repeat(4000),
            "must not be longer than 4096 bytes",
        ),
        ("(".repeat(1500) + "1" + &")".repeat(1500), ""),
        ("[".repeat(1500) + &"]".repeat(1500), ""),
        ("[".repeat(21) + &"]".repeat(21) + " == []", ""),
        ("[".repeat(58) + &"]".repeat(58) + " == []", ""),
        ("-".repeat(3000) + "1", ""),
        ("!".repeat(3001) + "true", ""),
        (["1"; 1000].join("+") + " == 1", ""),
        (
            "[1].all(a, [1].all(b, [1].all(c, [1].all(d, true))))".into(),
            "loops must not be nested deeper than 3 levels",
        ),
        ("object".to_owned() + &".a".repeat(1000), ""),
        ("\u{0}\u{feff}'".into(), ""),
    ] {
        let started = Instant::now();
        let told = holds(&expression);
        let is_refused = told.as_ref().is_err_and(|error| error.contains(expected));
        assert!(expected.is_empty() || is_refused, "{expression:.40}: {told:?}");
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "{:?} for {expression:.40}",
            started.elapsed()
        );
    }
}

#[test]
fn expressions_that_could_exceed_the_budget_are_not_evaluated() {
    let items: Vec<_> = (0..2000)
        .map(|number| json!({"name": format!("c{number}"), "image": "i"}))
        .collect();
    let mut large = pod();
    large["spec"]["containers"] = items.into();
    large["data"] = "x".repeat(1_000_000).into();
    for expression in [
        "object.spec.containers.all(a, object.spec.containers.all(b, object.spec.containers.all(c, true)))",
        "lists.range(1000000000).size() == 0",
        "object.data.replace('', object.data).size() == 0",
        "'%.999999999f'.format([1.0]) == ''",
        "object.spec.containers.all(a, a.name.matches('(a{1000}){1000}' + a.image))",
        "object.spec.containers.map(a, object.data).size() == 0",
        "[object, object].map(a, [object, object].map(b, [object, object].map(c, [a, b, c]))).size() == 1",
    ] {
        let condition = MatchCondition {
            name: "c".into(),
            expression: expression.into(),
        };
        let started = Instant::now();
        let error = run(RuleSource::CelConditions(&[condition]), &large).unwrap_err();
        assert!(
            error.contains("may take too long") || error.contains("may yield more"),
            "{expression}: {error}"
        );
        assert!(started.elapsed() < Duration::from_secs(5), "{expression}");
    }
    // Doubling in a single expression.
    let doubled = (0..60).fold("'xxxxxxxx'".to_owned(), |text, _| {
        format!("{text}.replace('x', 'xxxxxxxx')")
    });
    let error = holds(&format!("{doubled} == ''")).unwrap_err();
    assert!(
        error.contains("may take too long") || error.contains("nested deeper"),
        "{error}"
    );
    // A single loop over all items is allowed.
    let condition = MatchCondition {
        name: "c".into(),
        expression: "object.spec.containers.all(a, a.image == 'i')".into(),
    };
    assert_eq!(
        run(RuleSource::CelConditions(&[condition]), &large),
        Ok(json!(true))
    );
}

#[test]
fn cost_estimates_of_long_lists_do_not_overflow() {
    for expression in [
        "lists.range(size(object.spec.containers)).flatten() == []",
        "lists.range(9223372036854775807).distinct() == []",
    ] {
        let error = holds(expression).unwrap_err();
        assert!(
            !error.contains("form that is not supported"),
            "{expression}: {error}"
        );
    }
}
