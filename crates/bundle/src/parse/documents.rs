//! The objects in `manifests/`.

use serde_json::Value;
use windlass_object::{JsonPath, Problem, yaml};

use super::{
    model::{Files, Manifest},
    rule,
};

const FOLDER: &str = "manifests/";

/// Lists every object of the bundle in file order; flattens `kind: List`.
pub(super) fn manifests(files: &Files, problems: &mut Vec<Problem>) -> Vec<Manifest> {
    let mut manifests = Vec::new();
    let mut found = false;
    let mut values = 0;
    for (file, bytes) in files {
        let Some(name) = file.strip_prefix(FOLDER) else {
            continue;
        };
        found = true;
        if let Some((folder, _)) = name.split_once('/') {
            problems.push(Problem::in_bundle(
                file,
                rule::SUBDIRECTORY,
                format!(
                    "subdirectories are not allowed within the \"manifests\" directory of the bundle image \
                     filesystem: found \"{FOLDER}{folder}\""
                ),
            ));
            continue;
        }
        match yaml::documents(bytes) {
            Ok(documents) => {
                values += documents.iter().map(yaml::count).sum::<usize>();
                if values > yaml::BUNDLE_VALUES {
                    let message = "exceeds the size limit together with the files before it";
                    problems.push(Problem::in_bundle(file, rule::SYNTAX, message));
                    return manifests;
                }
                flatten_file(file, documents, &mut manifests, problems);
            }
            Err(message) => problems.push(Problem::in_bundle(file, rule::SYNTAX, message)),
        }
    }
    if !found {
        problems.push(Problem::in_bundle(
            "manifests",
            rule::MANIFESTS_MISSING,
            "the bundle has no files in \"manifests\"",
        ));
    }
    manifests
}

/// Lists every object of one file; flattens `kind: List`.
pub(super) fn file(file: &str, bytes: &[u8], problems: &mut Vec<Problem>) -> Vec<Manifest> {
    let mut manifests = Vec::new();
    match yaml::documents(bytes) {
        Ok(documents) => flatten_file(file, documents, &mut manifests, problems),
        Err(message) => problems.push(Problem::in_bundle(file, rule::SYNTAX, message)),
    }
    manifests
}

fn flatten_file(
    file: &str,
    documents: Vec<Value>,
    manifests: &mut Vec<Manifest>,
    problems: &mut Vec<Problem>,
) {
    let several = documents.len() > 1;
    for (index, object) in documents.into_iter().enumerate() {
        let manifest = Manifest {
            file: file.to_owned(),
            document: several.then_some(index),
            path: "$".to_owned(),
            object,
        };
        flatten(manifest, manifests, problems);
    }
}

/// Adds `manifest`, or its items if it is a list.
fn flatten(mut manifest: Manifest, manifests: &mut Vec<Manifest>, problems: &mut Vec<Problem>) {
    if !manifest.object.is_object() {
        problems.push(manifest.problem(
            &JsonPath::root(),
            rule::NOT_AN_OBJECT,
            "is not a Kubernetes object: expected a mapping",
        ));
        return;
    }
    if manifest.kind().is_empty() {
        problems.push(manifest.problem(
            &JsonPath::root().field("kind"),
            rule::KIND_MISSING,
            "the object has no kind",
        ));
        return;
    }
    if manifest.kind() != "List" {
        manifests.push(manifest);
        return;
    }
    let items = match manifest.object.get_mut("items").map(Value::take) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) => items,
        Some(_) => {
            let message = "must be a list";
            problems.push(manifest.problem(&JsonPath::root().field("items"), rule::FIELD_TYPE, message));
            return;
        }
    };
    for (index, object) in items.into_iter().enumerate() {
        let item = Manifest {
            file: manifest.file.clone(),
            document: manifest.document,
            path: format!("{}.items[{index}]", manifest.path),
            object,
        };
        flatten(item, manifests, problems);
    }
}
