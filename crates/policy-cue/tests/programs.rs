//! Documented behaviour that differs from CUE.

#![expect(clippy::unwrap_used, reason = "a failure fails the test")]

use policy_cue::{CueBudget, CueInputs, CueProgram, EvaluationError, SourcePosition};
use serde_json::{Value, json};

fn run(source: &str, object: &Value) -> Result<Option<Value>, EvaluationError> {
    let program = CueProgram::compile(source).unwrap();
    let inputs = CueInputs::new().with_input("object", object);
    program.evaluate(&inputs, "validate", &CueBudget::default())
}

#[test]
fn the_right_side_is_evaluated_only_if_the_left_is_not_decisive() {
    let guard = "object: _ @tag(object)\n\
        reject: object.metadata.labels != null && object.metadata.labels[\"no-delete\"] == \"true\"\n\
        validate: {valid: !reject}";
    let unlabelled = json!({"metadata": {"labels": null}});
    assert_eq!(run(guard, &unlabelled).unwrap(), Some(json!({"valid": true})));
    let other = "object: _\nvalidate: {valid: object.a == _|_ || object.a > 3}";
    assert_eq!(run(other, &json!({})).unwrap(), Some(json!({"valid": true})));
    assert_eq!(
        run(other, &json!({"a": 2})).unwrap(),
        Some(json!({"valid": false}))
    );
    // The left side must be known, whatever the right side is.
    assert_eq!(
        run("object: _\nvalidate: {valid: object.a && false}", &json!({}))
            .unwrap_err()
            .category(),
        "incomplete"
    );
}

#[test]
fn an_incomplete_guard_does_not_hide_other_fields() {
    let beside = "object: _\nvalidate: {valid: true}\nif object.a.b {validate: {reason: \"b\"}}";
    assert_eq!(run(beside, &json!({})).unwrap(), Some(json!({"valid": true})));
    let within = "object: _\nif object.a.b {validate: {reason: \"b\"}}";
    assert_eq!(run(within, &json!({})).unwrap_err().category(), "incomplete");
    assert_eq!(run(within, &json!({"a": {"b": false}})).unwrap(), None);
}

#[test]
fn an_error_has_a_position() {
    let error = run(
        "object: _\nvalidate: {\n    a: [1, object.kind + 1]\n}",
        &json!({"kind": "Pod"}),
    )
    .unwrap_err();
    let EvaluationError::Failed {
        path,
        position,
        message,
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!(path, "validate.a[1]");
    assert_eq!(position, SourcePosition { line: 3, column: 24 });
    assert_eq!(message, "\"+\" cannot be applied to string and int");
}

#[test]
fn missing_fields_are_named() {
    let error = run(
        "object: _\nvalidate: {\"a b\": object.metadata.labels}",
        &json!({}),
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "2:26: validate.\"a b\" is incomplete: the field \"metadata\" does not exist"
    );
}

#[test]
fn an_undeclared_input_is_a_field() {
    assert_eq!(run("validate: 1", &json!(1)).unwrap(), Some(json!(1)));
    let program = CueProgram::compile("a: 1").unwrap();
    let value = json!({"b": 2});
    let inputs = CueInputs::new().with_input("given", &value);
    assert_eq!(
        program.evaluate(&inputs, "given", &CueBudget::default()).unwrap(),
        Some(value.clone())
    );
}

#[test]
fn two_inputs_of_the_same_name_are_unified() {
    let program = CueProgram::compile("given: _").unwrap();
    let (first, second, other) = (json!({"a": 1}), json!({"b": 2}), json!({"a": 2}));
    let inputs = CueInputs::new()
        .with_input("given", &first)
        .with_input("given", &second);
    let output = program.evaluate(&inputs, "given", &CueBudget::default()).unwrap();
    assert_eq!(output, Some(json!({"a": 1, "b": 2})));
    let inputs = CueInputs::new()
        .with_input("given", &first)
        .with_input("given", &other);
    let error = program
        .evaluate(&inputs, "given", &CueBudget::default())
        .unwrap_err();
    assert_eq!(error.category(), "error");
}

#[test]
fn unifying_struct_alternatives_is_refused() {
    let error = run(
        "object: _\na: *{x: 1} | {y: 2}\na: {z: 3}\nvalidate: a",
        &json!({}),
    )
    .unwrap_err();
    assert_eq!(error.category(), "unsupported");
    let chosen = "object: _\nlabels: *object.labels | {}\nvalidate: labels";
    assert_eq!(run(chosen, &json!({})).unwrap(), Some(json!({})));
    assert_eq!(
        run(chosen, &json!({"labels": {"a": "b"}})).unwrap(),
        Some(json!({"a": "b"}))
    );
}

#[test]
fn a_problem_contains_its_solution() {
    let problems = CueProgram::compile("import \"net\"\na: b\nc: >5\n").unwrap_err();
    assert_eq!(
        problems.to_string(),
        "3:4: bound: not part of policy CUE; compare in an \"if\" instead"
    );
    let problems = CueProgram::compile("import \"net\"\na: b\n").unwrap_err();
    assert_eq!(
        problems.to_string(),
        "1:8: import: package \"net\" is not part of policy CUE; it has list, math, strconv, strings\n\
         2:4: name: \"b\" is not declared; declare a field or import a package"
    );
}
