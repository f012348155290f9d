//! Data for policy references, from files.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use policy::{KnownData, PolicyProblem, cases};
use serde_json::Value;
use windlass_object::object;

use super::problem::PolicyFileProblem;
use crate::commands::documents;

/// Reads the files of `--data`: objects, lists of objects as `kubectl get -o yaml` prints them, or `objects`
/// and `responses`.
///
/// # Errors
///
/// All problems of the files, one per line.
pub(super) fn read(paths: &[PathBuf]) -> anyhow::Result<KnownData> {
    let mut known = KnownData::default();
    let mut problems = Vec::new();
    for path in paths {
        for document in objects(path)? {
            match cases::known_data(&document) {
                Ok(more) => {
                    known.objects.extend(more.objects);
                    known.responses.extend(more.responses);
                }
                Err(wrong) => problems.extend(with_path(path, wrong)),
            }
        }
    }
    match problems.is_empty() {
        true => Ok(known),
        false => Err(anyhow!(problems.join("\n"))),
    }
}

/// Returns the documents of a file, and the items of lists.
///
/// # Errors
///
/// When it cannot be read.
pub(super) fn objects(path: &Path) -> anyhow::Result<Vec<Value>> {
    let documents = documents::read(path, documents::LARGEST)?.into_iter();
    let items = |mut document: Value| {
        let is_list = object::text(&document, "/kind").is_some_and(|kind| kind.ends_with("List"));
        match document.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) if is_list => items,
            Some(other) => {
                document["items"] = other;
                vec![document]
            }
            None => vec![document],
        }
    };
    Ok(documents.flat_map(items).collect())
}

fn with_path(path: &Path, problems: Vec<PolicyProblem>) -> impl Iterator<Item = String> {
    let problems = problems.into_iter();
    problems.map(|problem| PolicyFileProblem::new(path, problem).to_string())
}
