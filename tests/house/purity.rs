//! The pure crates do no IO, read no clock and draw no random numbers: callers pass such values as arguments.
//!
//! Each Cargo.toml declares which crates may depend on which.

use std::{fs, path::Path, process::Command};

use crate::{sources, without_tests};

/// The folders of the pure crates.
const PURE: &[&str] = &[
    "adoption",
    "object",
    "bundle",
    "crd",
    "doctor",
    "trust",
    "catalog",
    "interpreter",
    "json-path",
    "oci",
    "policy",
    "policy-cue",
    "runtime-hooks",
    "structural-schema",
    "version-range",
];

/// Crates that pure crates must not depend on, even indirectly.
const FORBIDDEN: &[&str] = &["tokio", "kube", "kube-client", "kube-runtime", "hyper", "reqwest"];

/// Code that does IO, reads the clock or draws random numbers.
const IMPURE: &[&str] = &[
    "std::fs",
    "fs::{",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "std::env",
    "std::process",
    "SystemTime::now",
    "Instant::now",
    "Timestamp::now",
    "Zoned::now",
    "rand::rng",
    "rand::random",
    "println!",
    "tracing::",
];

/// Exceptions: folders that read files by design or are enabled by features, and what they may use.
const EXCEPTIONS: &[(&str, &[&str])] = &[
    ("bundle/src/sources", &["std::fs", "fs::{"]),
    ("interpreter/src/lua", &["Instant::now", "Timestamp::now"]),
    ("interpreter/src/in_cluster", &["tracing::"]),
    (
        "interpreter/src/webhook/client.rs",
        &["Instant::now", "rand::random", "tracing::"],
    ),
    (
        "interpreter/src/webhook/server",
        &["Instant::now", "TcpListener", "tracing::"],
    ),
    ("oci/src/client/proxy_connector.rs", &["TcpStream"]),
    ("runtime-hooks/src/client", &["Instant::now", "tracing::"]),
    ("runtime-hooks/src/in_cluster.rs", &["tracing::"]),
    (
        "runtime-hooks/src/server",
        &["Instant::now", "TcpListener", "tracing::"],
    ),
];

/// Returns the code without comments and without the tests at its end.
fn code(source: &str) -> String {
    without_tests(source)
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Reports whether a file is compiled only for tests: it is in a folder of tests, or its module has
/// `#[cfg(test)]`.
fn is_test(path: &Path) -> bool {
    let name = path.file_stem().unwrap().to_string_lossy();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let parents =
        ["mod.rs", "lib.rs"].map(|parent| fs::read_to_string(root.join(path).with_file_name(parent)));
    let is_for_tests = |parent: &String| parent.contains(&format!("#[cfg(test)]\nmod {name};"));
    parents.iter().flatten().any(is_for_tests) || path.iter().any(|folder| folder == "tests")
}

fn is_excepted(path: &Path, impure: &str) -> bool {
    EXCEPTIONS.iter().any(|(folder, allowed)| {
        path.starts_with(Path::new("crates").join(folder)) && allowed.contains(&impure)
    })
}

#[test]
fn pure_crates_do_no_io() {
    let mut wrong = Vec::new();
    for (path, source) in PURE
        .iter()
        .flat_map(|name| sources(&format!("crates/{name}/src")))
    {
        if is_test(&path) {
            continue;
        }
        let code = code(&source);
        let found = IMPURE
            .iter()
            .filter(|impure| code.contains(**impure) && !is_excepted(&path, impure));
        wrong.extend(found.map(|impure| format!("{}: {impure}", path.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pure_crates_have_no_dependencies_that_do_io() {
    for name in PURE {
        let output = Command::new(env!("CARGO"))
            .args([
                "tree",
                "--offline",
                "--edges",
                "normal",
                "--prefix",
                "none",
                "--format",
                "{p}",
            ])
            .arg("--manifest-path")
            .arg(format!("crates/{name}/Cargo.toml"))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        let tree = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let packages: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
        assert!(packages.len() > 1, "each crate has dependencies, {name}: {tree}");
        for forbidden in FORBIDDEN {
            assert!(!packages.contains(forbidden), "{name} depends on {forbidden}");
        }
    }
}
