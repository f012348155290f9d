//! `windlass check --crd-upgrade` as users see it.

use std::{
    fs,
    path::Path,
    process::{Output, Stdio},
};

use serde_json::{Value, json};

use crate::command::{check, text};

const OLD: &str = "
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Namespace
  metadata: {name: passed-over}
- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata: {name: widgets.example.com}
  spec:
    group: example.com
    scope: Namespaced
    names: {kind: Widget, plural: widgets}
    versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                size: {type: integer, maximum: 9}
                color: {type: string, enum: [red, green]}
                parts: {type: array, items: {type: object, properties: {name: {type: string}}}}
    - name: v1alpha1
      served: true
      storage: false
      schema: {openAPIV3Schema: {type: object}}
  status: {storedVersions: [v1alpha1, v1]}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets.example.com}, spec: {
  group: example.com, scope: Cluster, names: {kind: Gadget, plural: gadgets},
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
}}
";

const NEW: &str = r#"{
  "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
  "metadata": {"name": "widgets.example.com"},
  "spec": {
    "group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
    "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
      "type": "object",
      "properties": {"spec": {
        "type": "object",
        "required": ["size"],
        "properties": {
          "size": {"type": "integer", "maximum": 5, "format": "int32"},
          "color": {"type": "string", "enum": ["green", "blue"]},
          "parts": {"type": "array", "items": {"type": "object"}}
        }
      }}
    }}}]
  }
}"#;

fn compare(old: &str, new: &str) -> Output {
    check(&["--crd-upgrade", old, new], Stdio::null())
}

/// Writes the old and the new file.
fn change(folder: &Path) -> (String, String) {
    (write(folder, "old.yaml", OLD), write(folder, "new.json", NEW))
}

fn write(folder: &Path, name: &str, content: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn each_finding_is_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = change(folder.path());
    let output = compare(&old, &new);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr), "");
    insta::assert_snapshot!(text(&output.stdout));
    let input = fs::File::open(&new).unwrap();
    let from_input = check(&["--crd-upgrade", &old, "-"], input.into());
    assert_eq!(text(&from_input.stdout), text(&output.stdout));
    let same = compare(&old, &old);
    assert_eq!((same.status.code(), text(&same.stdout)), (Some(0), String::new()));
}

#[test]
fn exceptions_become_warnings_and_json_lists_everything() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = change(folder.path());
    let exceptions = write(
        folder.path(),
        "exceptions.yaml",
        "
- {crd: gadgets.example.com, enforcement: None}
- {crd: widgets.example.com, enforcement: None}
- {crd: widgets.example.com, field: ^.spec.color, enforcement: Warn}
",
    );
    let arguments = [
        "--crd-upgrade",
        &old,
        &new,
        "--exceptions",
        &exceptions,
        "-o",
        "json",
    ];
    let output = check(&arguments, Stdio::null());
    assert_eq!(
        (output.status.code(), text(&output.stderr)),
        (Some(0), String::new())
    );
    let findings: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        findings,
        json!([{
            "crd": "widgets.example.com",
            "version": "v1",
            "field": "^.spec.color",
            "rule": "enum",
            "message": "allowed enum values removed : [\"red\"]",
            "enforcement": "Warn",
        }])
    );
}

#[test]
fn bundles_are_compared_as_they_are_installed() {
    // The versions have different schemas; the bundle's webhook converts them.
    for (old, new, expected) in [
        ("sample.v1", "sample.v2", ""),
        (
            "sample.v2",
            "sample.v1",
            "widgets.sample.windlass.dev v2 - servedVersionRemoval: served version removed : v2 (warning)\n",
        ),
    ] {
        let output = compare(old, new);
        assert_eq!(
            (output.status.code(), text(&output.stdout).as_str()),
            (Some(0), expected)
        );
    }
}

#[test]
fn invalid_input_is_reported_with_file_and_field() {
    let folder = tempfile::tempdir().unwrap();
    let good = write(folder.path(), "good.yaml", OLD);
    let gone = folder.path().join("gone").to_str().unwrap().to_owned();
    let large = folder.path().join("large");
    fs::File::create(&large).unwrap().set_len(100 << 20).unwrap();
    let bomb = (1..40).fold("a0: &a0 [x, x]\n".to_owned(), |text, index| {
        format!("{text}a{index}: &a{index} [*a{0}, *a{0}]\n", index - 1)
    });
    let odd = OLD.replace("group: example.com, scope: Cluster", "group: [1], scope: Cluster");
    for (bad, expected) in [
        (gone, "gone: cannot be read: No such file"),
        (folder.path().to_str().unwrap().to_owned(), "is not a bundle"),
        (large.to_str().unwrap().to_owned(), "large: is too large"),
        (write(folder.path(), "bomb", &bomb), "bomb: $: "),
        (
            write(folder.path(), "empty", ""),
            "empty: $: contains no CustomResourceDefinition",
        ),
        (
            write(folder.path(), "odd", &odd),
            "odd: $[1].spec.group: must be a string, not a list",
        ),
    ] {
        for output in [compare(&good, &bad), compare(&bad, &good)] {
            assert_eq!(
                (output.status.code(), text(&output.stdout)),
                (Some(1), String::new())
            );
            let said = text(&output.stderr);
            assert!(said.contains(expected), "{bad}: {said}");
        }
    }
    let exceptions = write(
        folder.path(),
        "exceptions",
        "- {feild: ^.spec, enforcement: None}",
    );
    let output = check(
        &["--crd-upgrade", &good, &good, "--exceptions", &exceptions],
        Stdio::null(),
    );
    assert!(
        text(&output.stderr).contains("exceptions: $[0].feild: "),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_comparison_needs_two_inputs_instead_of_a_bundle() {
    for arguments in [
        &["--crd-upgrade", "sample.v1"][..],
        &["--crd-upgrade", "sample.v1", "sample.v2", "sample.v1"],
        &["sample.v1", "--exceptions", "e"],
    ] {
        let output = check(arguments, Stdio::null());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}
