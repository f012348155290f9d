//! `windlass policy explain`.

use serde_json::Value;

use crate::{IMAGES, LABEL, POD, folder, policy};

#[test]
fn each_policy_is_explained_part_by_part() {
    let folder = folder(&[("label.yaml", LABEL), ("images.yaml", IMAGES), ("pod.yaml", POD)]);
    let arguments = [
        "explain",
        "--policy",
        ".",
        "--object",
        "pod.yaml",
        "--operation",
        "delete",
    ];
    let printed = policy(folder.path(), &arguments);
    assert_eq!((printed.code, printed.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!(printed.stdout, @r"
    OBJECT   POLICY                        FIELD                      MATCHES  REASON
    Pod n/a  ClusterOverridePolicy label   -                          no       -
    -        -                             spec.resourceSelectors[0]  yes      -
    -        -                             spec.overrideRules[0]      no       deletions are not overridden
    Pod n/a  ClusterValidatePolicy images  -                          yes      -
    -        -                             spec.resourceSelectors[0]  yes      -
    -        -                             spec.validateRules[0]      yes      -
    Pod n/a  ClusterValidatePolicy tags    -                          yes      -
    -        -                             spec.validateRules[0]      yes      -
    ");
}

#[test]
fn json_has_the_parts_of_each_policy() {
    let oversell = crate::samples().join("oversell/policy.yaml");
    let folder = folder(&[("pod.yaml", POD)]);
    let arguments = [
        "explain",
        "--policy",
        oversell.to_str().unwrap(),
        "--object",
        "pod.yaml",
        "-o",
        "json",
    ];
    let printed = policy(folder.path(), &arguments);
    let found: Value = serde_json::from_str(&printed.stdout).unwrap();
    let policy = &found[0]["policies"][0];
    assert_eq!(policy["asked"], false);
    assert_eq!(
        policy["parts"][0]["whyNot"],
        "fieldSelector: spec.priorityClassName is missing, not batch"
    );
    assert_eq!(policy["parts"][1]["whyNot"], "the Namespace n is not known");
}
