//! `windlass policy test`.

use serde_json::{Value, json};

use crate::{LABEL, folder, policy};

const CASES: &str = "
policies: [label.yaml]
objects:
  pod: {apiVersion: v1, kind: Pod, metadata: {name: a}}
cases:
- name: a pod gets a label
  object: pod
  expect: {change: {metadata: {labels: {team: a}}}}
- name: a pod gets another label
  object: pod
  expect: {change: {metadata: {labels: {team: b}}}}
- name: a pod is denied
  object: pod
  expect: {denied: 'no'}
";

#[test]
fn failed_cases_are_shown_and_counted() {
    let folder = folder(&[
        ("label.yaml", LABEL),
        ("deep/er/cases.yaml", ""),
        ("my-cases.yaml", CASES),
    ]);
    let printed = policy(folder.path(), &["test", "."]);
    assert_eq!((printed.code, printed.stderr.as_str()), (Some(1), ""));
    insta::assert_snapshot!(printed.stdout, @r#"
    ./deep/er/cases.yaml: $: has no cases
    ./my-cases.yaml: a pod gets another label:
      change:
        --- expected
        +++ actual
        @@ -3,4 +3,4 @@
         metadata:
           name: a
           labels:
        -    team: b
        +    team: a
    ./my-cases.yaml: a pod is denied:
      denied: expected "no", not nothing
    1 of 4 cases pass
    "#);
}

#[test]
fn a_table_of_all_cases_can_be_shown() {
    let folder = folder(&[("label.yaml", LABEL), ("cases.yaml", CASES)]);
    let printed = policy(folder.path(), &["test", "cases.yaml", "-v"]);
    assert_eq!(printed.code, Some(1));
    let table = "FILE        CASE                      OPERATION  OBJECT  RESULT\n\
                 cases.yaml  a pod gets a label        CREATE     Pod a   pass\n\
                 cases.yaml  a pod gets another label  CREATE     Pod a   fail\n";
    assert!(printed.stdout.contains(table), "{}", printed.stdout);
}

#[test]
fn json_lists_all_cases_and_the_errors_that_prevent_them() {
    let folder = folder(&[
        ("label.yaml", LABEL),
        ("a/cases.yaml", ""),
        ("b/cases.yaml", "a: ["),
        ("cases.yaml", CASES),
    ]);
    let printed = policy(folder.path(), &["test", ".", "-o", "json"]);
    assert_eq!((printed.code, printed.stderr.as_str()), (Some(1), ""));
    let mut report: Value = serde_json::from_str(&printed.stdout).unwrap();
    let unread = report["problems"][1].take();
    assert!(
        unread["message"].as_str().unwrap().contains("b/cases.yaml"),
        "{unread}"
    );
    let case = |name: &str, passes: bool| json!({"file": "./cases.yaml", "name": name, "operation": "CREATE", "object": "Pod a", "passes": passes});
    let with = |mut case: Value, difference: Value| {
        case["differences"] = json!([difference]);
        case
    };
    let labelled = |team: &str| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"team": team}}});
    let expected = json!({
        "all": 5, "pass": 1,
        "problems": [{"file": "./a/cases.yaml", "path": "$", "message": "has no cases"}, null],
        "cases": [
            case("a pod gets a label", true),
            with(
                case("a pod gets another label", false),
                json!({"field": "change", "expected": labelled("b"), "actual": labelled("a")}),
            ),
            with(
                case("a pod is denied", false),
                json!({"field": "denied", "expected": "no", "actual": null}),
            ),
        ],
    });
    assert_eq!(report, expected);
}

#[test]
fn errors_of_all_files_name_file_and_field() {
    let broken = LABEL.replace("op: add", "op: put");
    let cases = "
policies: [3]
cases:
- {name: a, object: pod, expekt: {}}
- {name: b, object: pod}
";
    let missing = CASES.replace("label.yaml", "missing.yaml");
    let folder = folder(&[
        ("a/cases.yaml", cases),
        ("b/cases.yaml", CASES),
        ("b/label.yaml", &broken),
        ("c/cases.yaml", &missing),
        ("d/cases.yaml", "a: ["),
    ]);
    let printed = policy(folder.path(), &["test", "a", "b", "c", "d"]);
    assert_eq!(printed.code, Some(1));
    let lines: Vec<_> = printed.stdout.lines().collect();
    for (line, expected) in lines.iter().zip([
        "a/cases.yaml: $.cases[0].expekt: unknown field",
        "b/label.yaml: $.spec.overrideRules[0].overriders.plaintext[0].op: ",
        "c/cases.yaml: $.policies[0]: missing.yaml cannot be read: ",
        "d/cases.yaml: ",
        "0 of 8 cases pass",
    ]) {
        assert!(line.starts_with(expected), "{line}");
    }
    assert_eq!(lines.len(), 5, "{lines:?}");
}

#[test]
fn a_folder_without_cases_is_an_error() {
    let folder = folder(&[("label.yaml", LABEL)]);
    let printed = policy(folder.path(), &["test", "."]);
    assert_eq!(printed.code, Some(2));
    assert!(
        printed
            .stderr
            .starts_with("error: no cases found: . has no file named cases.yaml")
    );
}
