//! `windlass policy apply`.

use serde_json::{Value, json};

use crate::{IMAGES, LABEL, POD, folder, policy};

const BAD_POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: b, namespace: n}
spec: {containers: [{name: c, image: bad}]}
";

#[test]
fn the_difference_and_who_made_it_are_shown() {
    let folder = folder(&[("label.yaml", LABEL), ("images.yaml", IMAGES), ("pod.yaml", POD)]);
    let printed = policy(folder.path(), &["apply", "--policy", ".", "--object", "pod.yaml"]);
    assert_eq!(
        (printed.code, printed.stderr.as_str()),
        (Some(0), ""),
        "{printed:?}"
    );
    insta::assert_snapshot!(printed.stdout, @r#"
    CREATE Pod n/a
      ClusterOverridePolicy label: rule 0: plaintext: add /metadata/labels/team
      ClusterValidatePolicy tags: rule 0: cel: warned: name a tag
      ClusterValidatePolicy images: evaluated, no effect
      allowed, with changes
    --- Pod n/a
    +++ Pod n/a, after policies
    @@ -3,6 +3,8 @@
     metadata:
       name: a
       namespace: "n"
    +  labels:
    +    team: a
     spec:
       containers:
       - name: c
    "#);
}

#[test]
fn a_denial_has_exit_code_1_and_no_result() {
    let objects = format!("{POD}---{BAD_POD}");
    let folder = folder(&[
        ("label.yaml", LABEL),
        ("images.yaml", IMAGES),
        ("pods.yaml", &objects),
    ]);
    let arguments = ["apply", "--policy", ".", "--object", "pods.yaml", "-o", "patch"];
    let printed = policy(folder.path(), &arguments);
    assert_eq!(printed.code, Some(1));
    let patch: Value = serde_json::from_str(&printed.stdout).unwrap();
    assert_eq!(
        patch,
        json!([{"op": "add", "path": "/metadata/labels", "value": {"team": "a"}}])
    );
    assert!(
        printed.stderr.contains("  denied: bad is bad\n"),
        "{}",
        printed.stderr
    );
}

#[test]
fn the_object_can_be_printed() {
    let folder = folder(&[("label.yaml", LABEL), ("pod.yaml", POD)]);
    for format in ["yaml", "json"] {
        let arguments = [
            "apply",
            "--policy",
            "label.yaml",
            "--object",
            "pod.yaml",
            "-o",
            format,
        ];
        let printed = policy(folder.path(), &arguments);
        let object: Value = serde_saphyr::from_str(&printed.stdout).unwrap();
        assert_eq!(object["metadata"]["labels"], json!({"team": "a"}), "{format}");
        assert!(
            printed.stderr.contains("allowed, with changes"),
            "{}",
            printed.stderr
        );
    }
}

#[test]
fn operation_user_and_old_object_are_used() {
    let confirm = crate::samples().join("confirm-deletion/policy.yaml");
    let confirm = confirm.to_str().unwrap();
    let namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}";
    let folder = folder(&[("ns.yaml", namespace), ("label.yaml", LABEL), ("pod.yaml", POD)]);
    let delete = [
        "apply",
        "--policy",
        confirm,
        "--object",
        "ns.yaml",
        "--operation",
        "DELETE",
    ];
    assert_eq!(policy(folder.path(), &delete).code, Some(1));
    let as_master = [&delete[..], &["--user", "root", "--group", "system:masters"]].concat();
    let printed = policy(folder.path(), &as_master);
    assert_eq!(printed.code, Some(0), "{printed:?}");
    let update = [
        "apply",
        "--policy",
        "label.yaml",
        "--object",
        "pod.yaml",
        "--old-object",
        "pod.yaml",
    ];
    let printed = policy(folder.path(), &update);
    assert!(
        printed
            .stdout
            .starts_with("UPDATE Pod n/a\n  allowed, nothing changes\n"),
        "{printed:?}"
    );
}

#[test]
fn references_of_policies_are_resolved_from_data() {
    let references = crate::samples().join("references/policy.yaml");
    let references = references.to_str().unwrap();
    let deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, annotations: {team: t}}, spec: {replicas: 3}}";
    let data = "responses: [{url: 'https://quota.example.com/teams?team=t', body: {replicas: 2}}]";
    let folder = folder(&[("deployment.yaml", deployment), ("data.yaml", data)]);
    let arguments = ["apply", "--policy", references, "--object", "deployment.yaml"];
    let printed = policy(folder.path(), &arguments);
    assert_eq!(printed.code, Some(1));
    // Parameters may be secret, so they are not printed.
    let expected = "fetched GET https://quota.example.com/teams: the response of the server is not in the data; specify it with --data";
    assert!(printed.stdout.contains(expected), "{}", printed.stdout);
    let printed = policy(
        folder.path(),
        &[&arguments[..], &["--data", "data.yaml"]].concat(),
    );
    assert_eq!(printed.code, Some(1));
    let expected = "denied: more replicas than the quota of the team";
    assert!(printed.stdout.contains(expected), "{}", printed.stdout);
}

#[test]
fn usage_errors_have_exit_code_2() {
    let broken = LABEL.replace("op: add", "op: put");
    let folder = folder(&[
        ("label.yaml", LABEL),
        ("broken.yaml", &broken),
        ("pod.yaml", POD),
        ("text.yaml", "a"),
    ]);
    for (arguments, expected) in [
        (
            &["--policy", "label.yaml", "--object", "missing.yaml"][..],
            "error: cannot open missing.yaml",
        ),
        (
            &["--policy", "label.yaml", "--object", "text.yaml"],
            "error: text.yaml: object 1: is not an object",
        ),
        (
            &["--policy", "broken.yaml", "--object", "pod.yaml"],
            "error: broken.yaml: $.spec.overrideRules[0].overriders.plaintext[0].op: ",
        ),
        (
            &[
                "--policy",
                "label.yaml",
                "--object",
                "pod.yaml",
                "--operation",
                "UPDATE",
            ],
            "error: --operation UPDATE needs --old-object",
        ),
        (
            &[
                "--policy",
                "label.yaml",
                "--object",
                "pod.yaml",
                "--namespace-object",
                "pod.yaml",
            ],
            "error: pod.yaml must contain a Namespace",
        ),
        (
            &["--object", "pod.yaml"],
            "error: the following required arguments",
        ),
    ] {
        let printed = policy(folder.path(), &[&["apply"], arguments].concat());
        assert_eq!(
            (printed.code, printed.stdout.as_str()),
            (Some(2), ""),
            "{arguments:?}"
        );
        assert!(printed.stderr.starts_with(expected), "{}", printed.stderr);
    }
}
