//! `windlass policy` and the sample policies as users see them: the output and the exit code.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod apply;
mod check;
mod explain;
mod hostile;
mod samples;
mod test;

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

/// The output of a command, and its exit code.
#[derive(Debug, PartialEq, Eq)]
struct Printed {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/policy/examples")
}

/// Runs `windlass policy` in a folder.
fn policy(folder: &Path, arguments: &[&str]) -> Printed {
    with_input(folder, arguments, b"")
}

fn with_input(folder: &Path, arguments: &[&str], input: &[u8]) -> Printed {
    let mut child = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .arg("policy")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that does not read its input may have exited already.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    Printed {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Creates a temporary folder with files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    folder
}

/// A policy that adds a label to pods.
const LABEL: &str = r#"
apiVersion: policy.kcloudlabs.io/v1alpha1
kind: ClusterOverridePolicy
metadata: {name: label}
spec:
  resourceSelectors: [{apiVersion: v1, kind: Pod}]
  overrideRules:
  - targetOperations: [CREATE]
    overriders: {plaintext: [{op: add, path: /metadata/labels/team, value: a}]}
"#;

/// A policy that denies pods with a certain image name, and warns about others.
const IMAGES: &str = r#"
apiVersion: policy.kcloudlabs.io/v1alpha1
kind: ClusterValidatePolicy
metadata: {name: images}
spec:
  resourceSelectors: [{apiVersion: v1, kind: Pod}]
  validateRules:
  - cel: {validations: [{expression: "object.spec.containers.all(c, c.image != 'bad')", message: "bad is bad"}]}
---
apiVersion: policy.kcloudlabs.io/v1alpha1
kind: ClusterValidatePolicy
metadata: {name: tags}
spec:
  validationActions: [Warn]
  validateRules:
  - cel: {validations: [{expression: "object.spec.containers.all(c, c.image.contains(':'))", message: "name a tag"}]}
"#;

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: n}
spec: {containers: [{name: c, image: good}]}
";
