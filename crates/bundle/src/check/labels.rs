//! Labels of objects, Deployments and their pods.

use serde_json::Value;
use windlass_object::{JsonPath, Problem};

use super::names;
use crate::parse::{Bundle, Manifest, rule};

pub(super) fn check(bundle: &Bundle, problems: &mut Vec<Problem>) {
    for manifest in bundle.manifests() {
        let labels = manifest.object.pointer("/metadata/labels");
        check_labels(
            manifest,
            labels,
            &JsonPath::from_fields("metadata.labels"),
            problems,
        );
    }
    let list = JsonPath::from_fields("spec.install.spec.deployments");
    for (index, deployment) in bundle.csv().deployments().enumerate() {
        let path = list.item(index);
        check_labels(&bundle.csv, deployment.labels(), &path.field("label"), problems);
        let pods = deployment
            .spec()
            .and_then(|spec| spec.pointer("/template/metadata/labels"));
        let path = path
            .field("spec")
            .field("template")
            .field("metadata")
            .field("labels");
        check_labels(&bundle.csv, pods, &path, problems);
    }
}

fn check_labels(manifest: &Manifest, labels: Option<&Value>, path: &JsonPath, problems: &mut Vec<Problem>) {
    for (name, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        // Another check reports values of the wrong type.
        let value = value.as_str().unwrap_or_default();
        let mut messages = names::label_name(name);
        messages.extend(names::label_value(value));
        if !messages.is_empty() {
            let message = format!("invalid label '{name}: {value}': {}", messages.join(", "));
            problems.push(manifest.problem(&path.field(name), rule::LABEL, message));
        }
    }
}
