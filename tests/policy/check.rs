//! `windlass policy check`.

use serde_json::{Value, json};

use crate::{LABEL, folder, policy, with_input};

const BROKEN: &str = r#"
apiVersion: policy.kcloudlabs.io/v1alpha1
kind: OverridePolicy
metadata: {name: broken, namespace: n}
spec:
  selector: []
  overrideRules:
  - overriders:
      cue: |
        object: _ @tag(object)
        patches: [
          for k, v in object {op: "add"}
        }
  - overriders: {plaintext: [{op: add, path: a, value: b}]}
  - overriders: {cel: {expression: "1 +"}}
"#;

#[test]
fn every_problem_is_one_line_with_its_place() {
    let folder = folder(&[
        ("broken.yaml", BROKEN),
        ("label.yaml", LABEL),
        ("again.yaml", LABEL),
    ]);
    let printed = policy(folder.path(), &["check", "-f", "."]);
    assert_eq!((printed.code, printed.stderr.as_str()), (Some(1), ""));
    insta::assert_snapshot!(printed.stdout);
}

#[test]
fn json_has_line_and_column() {
    let folder = folder(&[("broken.yaml", BROKEN)]);
    let printed = policy(folder.path(), &["check", "-f", "broken.yaml", "-o", "json"]);
    assert_eq!(printed.code, Some(1));
    let problems: Value = serde_json::from_str(&printed.stdout).unwrap();
    let problems = problems.as_array().unwrap();
    assert!(
        problems.iter().any(|problem| problem["line"] == 4),
        "{problems:?}"
    );
    assert!(problems.iter().all(|problem| problem["file"] == "broken.yaml"));
}

#[test]
fn a_good_policy_prints_nothing() {
    let folder = folder(&[]);
    let printed = with_input(folder.path(), &["check", "-f", "-"], LABEL.as_bytes());
    let nothing = (Some(0), "", "");
    assert_eq!((printed.code, &*printed.stdout, &*printed.stderr), nothing);
    let printed = with_input(
        folder.path(),
        &["check", "-f", "-", "-o", "json"],
        LABEL.as_bytes(),
    );
    assert_eq!((printed.code, printed.stdout.as_str()), (Some(0), "[]\n"));
}

#[test]
fn rendered_templates_are_shown() {
    let template = "
apiVersion: policy.kcloudlabs.io/v1alpha1
kind: ClusterOverridePolicy
metadata: {name: label}
spec:
  overrideRules:
  - overriders: {template: {type: labels, operation: add, path: team, value: {string: a}}}
";
    let folder = folder(&[("policy.yaml", template)]);
    let arguments = ["check", "-f", "policy.yaml", "--show-rendered"];
    let printed = policy(folder.path(), &arguments);
    assert_eq!(printed.code, Some(0));
    let heading =
        "// policy.yaml: ClusterOverridePolicy label: $.spec.overrideRules[0].overriders.template\n";
    assert!(printed.stdout.starts_with(heading), "{}", printed.stdout);
    assert!(printed.stdout.contains("patches:"), "{}", printed.stdout);
    let printed = policy(folder.path(), &[&arguments[..], &["-o", "json"]].concat());
    let report: Value = serde_json::from_str(&printed.stdout).unwrap();
    assert_eq!(report["problems"], json!([]));
    assert_eq!(report["rendered"][0]["policy"], "ClusterOverridePolicy label");
}

#[test]
fn a_folder_without_policies_is_an_error() {
    let folder = folder(&[("pod.yaml", crate::POD), ("empty.yaml", "# nothing\n")]);
    let printed = policy(folder.path(), &["check", "-f", "pod.yaml", "-f", "empty.yaml"]);
    assert_eq!(printed.code, Some(1));
    insta::assert_snapshot!(printed.stdout, @r"
    pod.yaml: $.kind: must be one of ClusterOverridePolicy, OverridePolicy, ClusterValidatePolicy, of policy.kcloudlabs.io/v1alpha1
    empty.yaml: $: has no policy
    ");
    let printed = policy(folder.path(), &["check", "-f", "."]);
    assert_eq!(
        (printed.code, printed.stderr.as_str()),
        (Some(2), "error: no policy found in .\n")
    );
}
