//! The command as users see it: its output and exit code.

use std::fs::File;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::{bundles, folders};

pub(crate) fn check(arguments: &[&str], input: Stdio) -> Output {
    Command::new(env!("CARGO_BIN_EXE_windlass"))
        .arg("check")
        .args(arguments)
        .current_dir(bundles())
        .stdin(input)
        .output()
        .unwrap()
}

pub(crate) fn text(output: &[u8]) -> String {
    String::from_utf8(output.to_vec()).unwrap()
}

#[test]
fn problems_of_every_broken_sample() {
    let mut report = String::new();
    for name in folders(&bundles().join("broken")) {
        let output = check(&[&format!("broken/{name}")], Stdio::null());
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert_eq!(text(&output.stderr), "", "{name}");
        report += &format!("{name}\n{}\n", text(&output.stdout));
    }
    insta::assert_snapshot!(report);
}

#[test]
fn a_good_bundle_prints_nothing() {
    let output = check(&["sample.v1"], Stdio::null());
    assert_eq!(
        (output.status.code(), text(&output.stdout), text(&output.stderr)),
        (Some(0), String::new(), String::new())
    );
    let output = check(&["sample.v1", "--output", "json"], Stdio::null());
    assert_eq!(
        (output.status.code(), text(&output.stdout).as_str()),
        (Some(0), "[]\n")
    );
}

#[test]
fn json_has_the_rule_of_each_problem() {
    let output = check(&["broken/webhook-deployment", "-o", "json"], Stdio::null());
    assert_eq!(output.status.code(), Some(1));
    let problems: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        problems,
        json!([{
            "file": "manifests/csv.yaml",
            "path": "$.spec.webhookdefinitions[0].deploymentName",
            "rule": "webhook-deployment",
            "message": "webhook of type 'ValidatingAdmissionWebhook' with name 'validate.broken.example.com' references \
                        non-existent deployment 'gone'",
        }])
    );
}

#[test]
fn the_rules_are_listed() {
    let output = check(&["--rules"], Stdio::null());
    assert_eq!(output.status.code(), Some(0));
    insta::assert_snapshot!(text(&output.stdout));
}

#[test]
fn an_archive_is_read_from_a_file_or_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bundle.tar.gz");
    let encoder = flate2::write::GzEncoder::new(File::create(&path).unwrap(), flate2::Compression::fast());
    let mut builder = tar::Builder::new(encoder);
    builder
        .append_dir_all("bundle", bundles().join("broken/csv-version"))
        .unwrap();
    builder.into_inner().unwrap().finish().unwrap();

    let from_file = check(&[path.to_str().unwrap()], Stdio::null());
    let from_input = check(&["-"], File::open(&path).unwrap().into());
    let from_folder = check(&["broken/csv-version"], Stdio::null());
    assert_eq!(from_folder.status.code(), Some(1));
    assert_eq!(text(&from_file.stdout), text(&from_folder.stdout));
    assert_eq!(text(&from_input.stdout), text(&from_folder.stdout));
}

#[test]
fn invalid_input_is_a_one_line_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("binary"), [0xff; 1000]).unwrap();
    File::create(path("large")).unwrap().set_len(100 << 20).unwrap();
    for (bundle, expected) in [
        (path(""), "is not a bundle: directory \"manifests\" not found"),
        (path("binary"), "is neither a directory nor a .tar.gz archive"),
        (path("large"), "is neither a directory nor a .tar.gz archive"),
        (
            path("gone"),
            "cannot be read: No such file or directory (os error 2)",
        ),
    ] {
        let output = check(&[&bundle], Stdio::null());
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(text(&output.stdout), format!("{bundle}: $: {expected}\n"));
    }
}
