//! Any files of a bundle yield problems or render deterministically. The first line of the input contains
//! options; each file follows a line with its name.

#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_bundle::{
    Files,
    check::Tolerance,
    render::{CertificateProvider, ConversionMode, InstallOptions},
};

#[allow(dead_code, reason = "other targets use more of it")]
mod checks;

/// The prefix of the line with a file's name.
const FILE: &str = "=== ";

fuzz_target!(|input: &str| {
    let (how, rest) = input.split_once('\n').unwrap_or(("", input));
    let mut files = Files::new();
    let mut current = None;
    for line in rest.split_inclusive('\n') {
        match (line.strip_prefix(FILE), &current) {
            (Some(name), _) => current = Some(name.trim().to_owned()),
            (None, Some(name)) => files
                .entry(name.clone())
                .or_insert_with(Vec::new)
                .extend(line.as_bytes()),
            (None, None) => {}
        }
    }
    let config = checks::config(&files.remove("config").unwrap_or_default());
    let has = |word: &str| how.split(' ').any(|other| other == word);
    let options = InstallOptions {
        namespace: "widgets-system".to_owned(),
        watch_namespaces: how
            .split(' ')
            .filter_map(|word| Some(word.strip_prefix("ns=")?.to_owned()))
            .collect(),
        config,
        certificates: if has("none") {
            CertificateProvider::None
        } else {
            CertificateProvider::default()
        },
        conversion: if has("external") {
            ConversionMode::External
        } else {
            ConversionMode::Managed
        },
        blocking_webhooks: has("blocking"),
    };
    let tolerance = Tolerance {
        undeclared_conversions: has("external"),
        blocking_webhooks: has("blocking"),
    };
    checks::check(&files, &options, tolerance);
});
