//! Every reason of a condition or an event is documented.

use std::{collections::BTreeSet, fs, path::Path, sync::LazyLock};

use regex::Regex;

use crate::page::{Page, root};

/// Words that are spelled like reasons and are none: kinds, values of fields, conditions, actions of events,
/// printed types, and reasons of other controllers.
const OTHER_WORDS: &str = include_str!("other_words.txt");

/// Collects the words in the program that are spelled like reasons.
fn reason_like_words(folder: &Path, found: &mut BTreeSet<String>) {
    static TESTS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"#\[cfg\(test\)\]\n(pub\S* )?mod \w+ \{").unwrap());
    static WORD: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#""([A-Z][A-Za-z]*[a-z][A-Za-z]*)""#).unwrap());
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_string_lossy();
        if stem.ends_with("tests") {
            continue;
        }
        if path.is_dir() {
            reason_like_words(&path, found);
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        let program = TESTS.split(&source).next().unwrap();
        let lines = program
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        for line in lines {
            found.extend(WORD.captures_iter(line).map(|captures| captures[1].to_owned()));
        }
    }
}

/// Returns the variants of an enum whose values are printed by name.
fn variants(path: &str, head: &str) -> BTreeSet<String> {
    static VARIANT: LazyLock<Regex> = LazyLock::new(|| Regex::new("(?m)^    ([A-Z][A-Za-z]+),$").unwrap());
    let source = fs::read_to_string(root().join(path)).unwrap();
    let body = source.split_once(head).unwrap().1.split_once("\n}").unwrap().0;
    let variants: BTreeSet<_> = VARIANT
        .captures_iter(body)
        .map(|found| found[1].to_owned())
        .collect();
    assert!(!variants.is_empty(), "{path} has no {head}");
    variants
}

/// Returns the first column of the page's tables.
fn explained_reasons() -> BTreeSet<String> {
    static NAME: LazyLock<Regex> = LazyLock::new(|| Regex::new("`([A-Za-z]+)`").unwrap());
    let page = Page::read("docs/troubleshooting.md".into());
    let rows = page.text.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.flat_map(|row| {
        let cell = format!("`{}", row.split(" | ").next().unwrap());
        NAME.captures_iter(&cell)
            .map(|captures| captures[1].to_owned())
            .collect::<Vec<_>>()
    })
    .collect()
}

#[test]
fn every_reason_is_explained() {
    let mut found = variants("crates/trust/src/rotation/assessment.rs", "pub enum Reason {");
    for folder in [
        "crates/operator/src",
        "crates/cluster/src",
        "crates/oci/src/client",
        "crates/bundle/src/upgrade",
    ] {
        reason_like_words(&root().join(folder), &mut found);
    }
    let others: BTreeSet<_> = OTHER_WORDS.split_whitespace().map(str::to_owned).collect();
    let explained = explained_reasons();
    let missing: Vec<_> = found
        .iter()
        .filter(|word| !others.contains(*word) && !explained.contains(*word))
        .collect();
    assert!(
        missing.is_empty(),
        "reasons that docs/troubleshooting.md does not explain (other words belong in other_words.txt): {missing:?}"
    );
    let gone: Vec<_> = explained.difference(&found).collect();
    assert!(
        gone.is_empty(),
        "explained in docs/troubleshooting.md, but not in the code: {gone:?}"
    );
    let unused: Vec<_> = others.difference(&found).collect();
    assert!(
        unused.is_empty(),
        "in other_words.txt, but not in the code: {unused:?}"
    );
}
