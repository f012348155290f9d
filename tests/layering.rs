//! The layers of `src/`: an arrow may only point down, and `domain` does no IO.

#![expect(clippy::unwrap_used, reason = "a file that cannot be read fails the test")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// The layers from top to bottom; those on one line do not know each other, but for what [`SIDEWAYS`] allows.
const LAYERS: &[&[&str]] = &[
    &["cli"],
    &["controllers", "servers"],
    &["sources", "cluster", "telemetry"],
    &["api"],
    &["domain"],
];

/// What a layer may use of one beside it.
const SIDEWAYS: &[(&str, &str)] = &[("cluster", "telemetry")];

/// What does IO, or knows the time, or draws at random: the domain gets all of that as arguments.
const IO: &[&str] = &[
    "std::fs",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "std::env",
    "std::process",
    "tokio::",
    "kube::",
    "reqwest::",
    "hyper::",
    "SystemTime::now",
    "Instant::now",
    "Timestamp::now",
    "Zoned::now",
    "rand::rng",
    "rand::random",
    "println!",
    "tracing::",
];

fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push((path.clone(), fs::read_to_string(&path).unwrap()));
        }
    }
    found
}

/// The code without comments and without the tests at its end, which may do what they like.
fn code(source: &str) -> String {
    let code = source
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default();
    code.lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Whether a file is compiled for tests alone: it is in a folder of tests, or the module around it says so.
fn is_test(path: &Path) -> bool {
    let name = path.file_stem().unwrap().to_string_lossy();
    let parents = ["mod.rs", "lib.rs"].map(|parent| fs::read_to_string(path.with_file_name(parent)));
    let is_for_tests = |parent: &String| parent.contains(&format!("#[cfg(test)]\nmod {name};"));
    parents.iter().flatten().any(is_for_tests) || path.iter().any(|folder| folder == "tests")
}

/// The layers that a piece of code names: `crate::x` and `crate::{x, y::z}`.
fn used(code: &str) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for (at, name) in code.match_indices("crate::") {
        let rest = &code[at + name.len()..];
        let first = |text: &str| {
            text.trim()
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .next()
                .map(str::to_owned)
        };
        let Some(group) = rest.strip_prefix('{') else {
            used.extend(first(rest));
            continue;
        };
        let mut depth = 0;
        let mut start = 0;
        for (index, character) in group.char_indices() {
            match character {
                '{' => depth += 1,
                '}' if depth == 0 => {
                    used.extend(first(&group[start..index]));
                    break;
                }
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    used.extend(first(&group[start..index]));
                    start = index + 1;
                }
                _ => {}
            }
        }
    }
    used
}

fn rank(layer: &str) -> Option<usize> {
    LAYERS.iter().position(|layers| layers.contains(&layer))
}

#[test]
fn arrows_point_down() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for layer in LAYERS.iter().copied().flatten() {
        for (path, source) in sources(&root.join(layer)) {
            for other in used(&code(&source)) {
                let down = match (rank(layer), rank(&other)) {
                    (Some(own), Some(below)) => own < below || *layer == other,
                    _ => true,
                };
                if !down && !SIDEWAYS.contains(&(layer, other.as_str())) {
                    wrong.push(format!("{} uses {other}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_domain_does_no_io() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut wrong = Vec::new();
    // What the domain is made of must not do any either.
    let all = ["src/domain", "structural-schema/src"].map(|folder| sources(&root.join(folder)));
    for (path, source) in all.into_iter().flatten() {
        if is_test(&path) {
            continue;
        }
        let code = code(&source);
        wrong.extend(
            IO.iter()
                .filter(|io| code.contains(**io))
                .map(|io| format!("{}: {io}", path.display())),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn groups_of_uses_are_read() {
    let code = "use crate::{api::{A, B}, cluster::C};\nlet x = crate::domain::x();";
    assert_eq!(used(code), ["api", "cluster", "domain"].map(str::to_owned).into());
}
