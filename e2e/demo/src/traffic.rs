//! Traffic for any bundle, from its CRDs and its examples.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windlass_bundle::{Bundle, WebhookType};
use windlass_object::object::{annotation, items, text};
use windlass_scenarios::{
    resource::{Expectation, Resource},
    sample,
};

/// Returns the resources for which webhooks of a bundle are called, each with an example of the bundle.
pub(super) fn resources(bundle: &Bundle) -> Vec<Resource> {
    let examples = examples(bundle);
    let seen = seen_by_webhooks(bundle);
    let mut resources = Vec::new();
    for crd in bundle.crds.iter().map(|manifest| &manifest.object) {
        let (Some(name), Some(group)) = (text(crd, "/metadata/name"), text(crd, "/spec/group")) else {
            continue;
        };
        if !seen.contains(name) {
            continue;
        }
        let versions: Vec<String> = items(crd, "/spec/versions")
            .iter()
            .filter(|version| version["served"] == true)
            .filter_map(|version| version["name"].as_str().map(str::to_owned))
            .collect();
        let kind = text(crd, "/spec/names/kind").unwrap_or_default();
        let plural = text(crd, "/spec/names/plural").unwrap_or_default();
        if group == sample::GROUP && plural == "widgets" {
            let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
            resources.push(Resource::widgets(&versions, Expectation::Admitted));
            continue;
        }
        let example = examples.iter().find(|example| {
            let served = |version: &String| example["apiVersion"] == json!(format!("{group}/{version}"));
            example["kind"] == kind && versions.iter().any(served)
        });
        let Some(example) = example else { continue };
        let mut example = example.clone();
        example["metadata"] = json!({});
        resources.push(Resource {
            group: group.to_owned(),
            plural: plural.to_owned(),
            namespaced: text(crd, "/spec/scope") == Some("Namespaced"),
            versions,
            optional_versions: Vec::new(),
            example,
            expectation: Expectation::Version,
        });
    }
    resources
}

/// Returns the resources of both bundles, at the versions that both serve.
pub(super) fn common(old: &Bundle, new: &Bundle) -> Vec<Resource> {
    let new = resources(new);
    resources(old)
        .into_iter()
        .filter_map(|mut resource| {
            let same = new
                .iter()
                .find(|new| new.group == resource.group && new.plural == resource.plural)?;
            resource
                .versions
                .retain(|version| same.versions.contains(version));
            Some(resource)
        })
        .collect()
}

/// Returns the examples in the annotation `alm-examples` of the ClusterServiceVersion.
fn examples(bundle: &Bundle) -> Vec<Value> {
    annotation(&bundle.csv.object, "alm-examples")
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// Returns the names of the CRDs whose objects a webhook converts or admits.
fn seen_by_webhooks(bundle: &Bundle) -> BTreeSet<&str> {
    let mut seen = BTreeSet::new();
    for webhook in bundle.csv().webhooks() {
        if webhook.webhook_type() == Some(WebhookType::Conversion) {
            seen.extend(webhook.conversion_crds());
            continue;
        }
        for crd in bundle.crds.iter().map(|manifest| &manifest.object) {
            let matches = |rule: &Value, list: &str, pointer: &str| {
                items(rule, list)
                    .iter()
                    .any(|entry| entry.as_str() == text(crd, pointer))
            };
            let ruled = items(webhook.0, "/rules").iter().any(|rule| {
                matches(rule, "/apiGroups", "/spec/group")
                    && matches(rule, "/resources", "/spec/names/plural")
            });
            if let Some(name) = text(crd, "/metadata/name").filter(|_| ruled) {
                seen.insert(name);
            }
        }
    }
    seen
}
