//! Runs `windlass render`.
#![expect(clippy::unwrap_used, reason = "in a test a panic is a failure")]

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

/// The sample bundles, and the namespace to watch for those that cannot watch all.
const SAMPLES: [(&str, Option<&str>); 7] = [
    ("sample.v1", None),
    ("sample.v2", None),
    ("conversion-only", None),
    ("rival", None),
    ("own-namespace", Some("operators")),
    ("runtime-extension", None),
    ("interpreter", None),
];

fn windlass(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn each_sample_matches_its_snapshot() {
    for (sample, watch_namespace) in SAMPLES {
        for certificates in ["windlass", "none"] {
            let bundle = format!("bundles/{sample}");
            let mut arguments = vec![
                "render",
                &bundle,
                "--namespace",
                "operators",
                "--certificates",
                certificates,
            ];
            arguments.extend(
                watch_namespace
                    .into_iter()
                    .flat_map(|namespace| ["--watch-namespace", namespace]),
            );
            let output = windlass(&arguments);
            assert_eq!(text(&output.stderr), "", "{sample}");
            assert!(output.status.success(), "{sample}");
            insta::assert_snapshot!(format!("{sample}-{certificates}"), text(&output.stdout));
        }
    }
}

#[test]
fn a_folder_holds_the_same_documents_as_standard_output() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("out");
    let arguments = ["render", "bundles/sample.v1", "--namespace", "operators"];
    let printed = windlass(&arguments);
    let folder_argument = folder.to_str().unwrap();
    let output = windlass(&[&arguments[..], &["--output-dir", folder_argument]].concat());
    assert!(output.status.success());
    assert!(output.stdout.is_empty());

    let mut documents: Vec<_> = text(&printed.stdout).split("---\n").map(str::to_owned).collect();
    documents.sort();
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    files.sort();
    assert_eq!(files, documents);
    assert!(
        folder
            .join("service_operators_sample-operator-service.yaml")
            .is_file()
    );

    let again = windlass(&[&arguments[..], &["--output-dir", folder_argument]].concat());
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("is not empty"));
}

#[test]
fn a_configuration_changes_the_deployment() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    fs::write(
        &config,
        "env: [{name: DEBUG, value: 'yes'}]\nwindlass: {preStop: false}\n",
    )
    .unwrap();
    let output = render_with(&config);
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        printed.contains("- name: DEBUG\n          value: \"yes\"\n"),
        "{printed}"
    );
    assert!(!printed.contains("preStop"));

    fs::write(&config, "environment: []\nenv: {}\n").unwrap();
    let output = render_with(&config);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let lines = text(&output.stderr);
    let file = config.display();
    assert!(
        lines.contains(&format!("{file}: $.environment: unknown field")),
        "{lines}"
    );
    assert!(
        lines.contains(&format!("{file}: $.env: must be a list")),
        "{lines}"
    );
}

fn render_with(config: &Path) -> Output {
    let config = config.to_str().unwrap();
    windlass(&[
        "render",
        "bundles/sample.v1",
        "--namespace",
        "operators",
        "--config",
        config,
    ])
}

#[test]
fn render_errors_are_one_line_each() {
    let empty = tempfile::tempdir().unwrap();
    let empty = empty.path().to_str().unwrap();
    for (arguments, expected) in [
        (
            &["bundles/sample.v1", "--watch-namespace", "other"][..],
            "invalid option(s): invalid target namespaces [other]: supported install modes [AllNamespaces] do not \
             support target namespaces [other]\n",
        ),
        (
            &["bundles/own-namespace"],
            "invalid option(s): invalid target namespaces []: exactly one target namespace must be specified: \
             use --watch-namespace operators, or spec.watchNamespaces\n",
        ),
        (
            &["bundles/sample.v1", "--config", "absent.yaml"],
            "absent.yaml: $: cannot be read: ",
        ),
        (&[empty], "is not a bundle"),
    ] {
        let output = windlass(&[&["render", "--namespace", "operators"], arguments].concat());
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        let lines = text(&output.stderr);
        assert!(lines.contains(expected), "{lines}");
        assert_eq!(lines.lines().count(), 1, "{lines}");
    }
}
