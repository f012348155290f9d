//! All problems of a bundle.

use windlass_object::{Problem, path::is_within};

use super::{
    admission, callers, conversions, crds, deployments, generated, install, labels, objects, permissions,
    ports, requirements, rules, webhooks,
};
use crate::parse::{Bundle, Files, ParsedBundle, rule};

/// Parses the bundle in `files` and checks it.
///
/// # Errors
///
/// Every problem, ordered by file and path.
pub fn parse(files: &Files) -> Result<Bundle, Vec<Problem>> {
    parse_for(files, Tolerance::default())
}

/// Problems that an install accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tolerance {
    /// The operator manages its conversions itself, so they need not be declared.
    pub undeclared_conversions: bool,
    /// Webhooks may block requests that their own bundle needs.
    pub blocking_webhooks: bool,
}

/// Like [`parse`], but accepts the problems in `tolerance`.
///
/// # Errors
///
/// Like [`parse`].
pub fn parse_for(files: &Files, tolerance: Tolerance) -> Result<Bundle, Vec<Problem>> {
    let ParsedBundle {
        bundle,
        problems: unreadable,
    } = Bundle::read(files);
    let mut problems: Vec<Problem> = bundle
        .iter()
        .flat_map(problems_of)
        // A field of a wrong type reads as absent, so do not report it as missing as well.
        .filter(|problem| !unreadable.iter().any(|other| overlaps(problem, other)))
        .collect();
    let tolerated = [
        (tolerance.undeclared_conversions, rule::CONVERSION_UNDECLARED),
        (tolerance.blocking_webhooks, rule::WEBHOOK_RULE_BLOCKING),
    ];
    for (_, rule) in tolerated.iter().filter(|(is_tolerated, _)| *is_tolerated) {
        problems.retain(|problem| problem.rule != rule.name);
    }
    problems.extend(unreadable);
    match bundle {
        Some(bundle) if problems.is_empty() => Ok(bundle),
        _ => {
            Problem::sort(&mut problems);
            Err(problems)
        }
    }
}

/// Returns every problem of the bundle in `files`, like [`parse`].
pub fn check_files(files: &Files) -> Vec<Problem> {
    parse(files).err().unwrap_or_default()
}

fn problems_of(bundle: &Bundle) -> Vec<Problem> {
    let mut problems = Vec::new();
    for subject in [
        install::check,
        objects::check,
        callers::check,
        labels::check,
        generated::check,
        permissions::check,
        deployments::check,
        crds::check,
        webhooks::check,
        ports::check,
        admission::check,
        rules::check,
        conversions::check,
        requirements::check,
    ] {
        subject(bundle, &mut problems);
    }
    problems
}

/// Reports whether the path of one problem contains that of the other.
fn overlaps(one: &Problem, other: &Problem) -> bool {
    one.file == other.file && (is_within(&other.path, &one.path) || is_within(&one.path, &other.path))
}
