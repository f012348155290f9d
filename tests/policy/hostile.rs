//! Hostile input causes one clear error: no file outside the folder is read, and the command terminates.

use std::{fs, time::Duration};

use crate::{LABEL, POD, Printed, folder, policy};

/// A limit far above the usual run time.
const LONG: Duration = Duration::from_secs(120);

fn run_in_time(files: &[(&str, &str)], arguments: &[&str]) -> Printed {
    let folder = folder(files);
    let started = std::time::Instant::now();
    let printed = policy(folder.path(), arguments);
    assert!(started.elapsed() < LONG, "{arguments:?}");
    printed
}

#[test]
fn a_yaml_bomb_is_refused() {
    let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (one, next) in "abcdefghij".chars().zip("bcdefghijk".chars()) {
        let aliases = vec![format!("*{one}"); 9].join(",");
        bomb.push_str(&format!("{next}: &{next} [{aliases}]\n"));
    }
    let files = [
        ("bomb.yaml", bomb.as_str()),
        ("cases.yaml", &bomb),
        ("label.yaml", LABEL),
    ];
    let checked = run_in_time(&files, &["check", "-f", "bomb.yaml"]);
    assert_eq!(checked.code, Some(1), "{checked:?}");
    assert_eq!(checked.stdout.lines().count(), 1, "{}", checked.stdout);
    let applied = run_in_time(
        &files,
        &["apply", "--policy", "label.yaml", "--object", "bomb.yaml"],
    );
    assert_eq!(
        (applied.code, applied.stderr.lines().count()),
        (Some(2), 1),
        "{applied:?}"
    );
    let tested = run_in_time(&files, &["test", "."]);
    assert_eq!(
        (tested.code, tested.stdout.lines().count()),
        (Some(1), 2),
        "{tested:?}"
    );
}

#[test]
fn a_file_that_is_too_large_is_refused() {
    let large = format!("# {}\n", "x".repeat(21 << 20));
    let printed = run_in_time(&[("large.yaml", &large)], &["check", "-f", "large.yaml"]);
    assert_eq!(
        (printed.code, printed.stdout.as_str()),
        (Some(1), "large.yaml: $: is larger than 20971520 bytes\n")
    );
}

#[test]
fn deep_objects_are_read_or_refused() {
    for depth in [60, 120, 5_000] {
        let spec = format!("{}1{}", "{a: ".repeat(depth), "}".repeat(depth));
        let pod = format!("{{apiVersion: v1, kind: Pod, metadata: {{name: a}}, spec: {spec}}}");
        let files = [("label.yaml", LABEL), ("pod.yaml", &*pod)];
        for arguments in [
            &["apply", "--policy", "label.yaml", "--object", "pod.yaml"][..],
            &[
                "explain",
                "--policy",
                "label.yaml",
                "--object",
                "pod.yaml",
                "-o",
                "json",
            ],
        ] {
            let printed = run_in_time(&files, arguments);
            let expected = if depth < 128 { 0 } else { 2 };
            assert_eq!(printed.code, Some(expected), "{depth}: {}", printed.stderr);
        }
    }
}

#[test]
fn programs_that_do_not_end_are_stopped() {
    let loops = |program: &str| {
        format!(
            "{{apiVersion: policy.kcloudlabs.io/v1alpha1, kind: ClusterOverridePolicy, metadata: {{name: loop}}, \
             spec: {{overrideRules: [{{overriders: {program}}}]}}}}"
        )
    };
    let items = (0..3_000)
        .map(|index| index.to_string())
        .collect::<Vec<_>>()
        .join(",");
    let pod = format!("{{apiVersion: v1, kind: Pod, metadata: {{name: a}}, spec: {{list: [{items}]}}}}");
    let cue = "object: _\nl: object.spec.list\npatches: [for a in l for b in l for c in l {op: \"remove\", path: \"/a\"}]";
    let cel = "object.spec.list.map(a, object.spec.list.map(b, object.spec.list.map(c, a + b + c))).filter(x, false)";
    for program in [
        format!("{{cue: {}}}", serde_json::Value::from(cue)),
        format!("{{cel: {{expression: {}}}}}", serde_json::Value::from(cel)),
    ] {
        let policy = loops(&program);
        let files = [("policy.yaml", policy.as_str()), ("pod.yaml", &*pod)];
        let printed = run_in_time(
            &files,
            &["apply", "--policy", "policy.yaml", "--object", "pod.yaml"],
        );
        assert_eq!(printed.code, Some(1), "{printed:?}");
        assert!(printed.stdout.contains("(failed)"), "{}", printed.stdout);
    }
}

#[test]
fn cases_cannot_read_files_outside_their_folder() {
    let cases = "{policies: [PATH], cases: [{name: a, object: {apiVersion: v1, kind: Pod}}]}";
    for path in [
        "../label.yaml",
        "/etc/hostname",
        "./label.yaml",
        "a/../../label.yaml",
    ] {
        let cases = cases.replace("PATH", path);
        let printed = run_in_time(
            &[("label.yaml", LABEL), ("in/cases.yaml", &cases)],
            &["test", "in"],
        );
        assert_eq!(printed.code, Some(1));
        let expected = "in/cases.yaml: $.policies[0]: must name a file below the folder of this one";
        assert!(printed.stdout.starts_with(expected), "{}", printed.stdout);
    }
}

#[cfg(unix)]
#[test]
fn a_link_cannot_leave_the_folder() {
    let cases = "{policies: [link.yaml], cases: [{name: a, object: {apiVersion: v1, kind: Pod}}]}";
    let folder = folder(&[("label.yaml", LABEL), ("in/cases.yaml", cases)]);
    std::os::unix::fs::symlink("../label.yaml", folder.path().join("in/link.yaml")).unwrap();
    fs::create_dir(folder.path().join("in/deep")).unwrap();
    std::os::unix::fs::symlink("..", folder.path().join("in/deep/loop")).unwrap();
    let printed = policy(folder.path(), &["test", "in"]);
    assert_eq!(
        (printed.code, printed.stdout.as_str()),
        (
            Some(1),
            "in/cases.yaml: $.policies[0]: link.yaml is outside the folder of this file\n0 of 1 cases pass\n"
        )
    );
}

#[test]
fn control_characters_are_escaped() {
    let name = r#""\e[2J\u202e""#;
    let pod = POD.replace("name: a,", &format!("name: {name},"));
    let label = LABEL.replace("value: a", &format!("value: {name}"));
    let cases = format!(
        "{{policies: [label.yaml], cases: [{{name: {name}, object: {{apiVersion: v1, kind: Pod}}}}]}}"
    );
    let files = [
        ("label.yaml", label.as_str()),
        ("pod.yaml", &*pod),
        ("cases.yaml", &*cases),
    ];
    for arguments in [
        &["check", "-f", "label.yaml"][..],
        &["apply", "--policy", "label.yaml", "--object", "pod.yaml"],
        &[
            "apply",
            "--policy",
            "label.yaml",
            "--object",
            "pod.yaml",
            "-o",
            "yaml",
        ],
        &["explain", "--policy", "label.yaml", "--object", "pod.yaml"],
        &["test", ".", "-v"],
    ] {
        let printed = run_in_time(&files, arguments);
        for text in [&printed.stdout, &printed.stderr] {
            assert!(!text.contains(['\u{1b}', '\u{202e}']), "{arguments:?}: {text:?}");
        }
    }
}
