//! CustomResourceDefinitions: presence, and validation by the API server
//! (`k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation`).

use std::collections::{BTreeMap, BTreeSet};

use windlass_object::{JsonPath, Problem, object};

use super::{
    names,
    webhook_definitions::{converted, versions},
};
use crate::parse::{Bundle, Manifest, rule};

const API_VERSION: &str = "apiextensions.k8s.io/v1";

pub(super) fn check(bundle: &Bundle, problems: &mut Vec<Problem>) {
    check_duplicates(bundle, problems);
    check_owned(bundle, problems);
    for crd in &bundle.crds {
        let api_version = object::text(&crd.object, "/apiVersion").unwrap_or_default();
        // Other versions have other fields. Another check reports a missing version.
        if api_version != API_VERSION {
            if !api_version.is_empty() {
                let message = format!(
                    "custom resource definition '{}' has apiVersion '{api_version}': it must be '{API_VERSION}'",
                    crd.name()
                );
                problems.push(crd.problem(
                    &JsonPath::from_fields("apiVersion"),
                    rule::CRD_API_VERSION,
                    message,
                ));
            }
            continue;
        }
        check_name(crd, problems);
        check_versions(crd, problems);
        check_preserve_unknown_fields(bundle, crd, problems);
        check_group(crd, problems);
    }
}

fn check_duplicates(bundle: &Bundle, problems: &mut Vec<Problem>) {
    let mut names = BTreeSet::new();
    let mut kinds = BTreeMap::new();
    for crd in &bundle.crds {
        let name = crd.name();
        if !names.insert(name) {
            let message = format!("bundle contains duplicate custom resource definition '{name}'");
            problems.push(crd.problem(
                &JsonPath::from_fields("metadata.name"),
                rule::CRD_DUPLICATE,
                message,
            ));
            continue;
        }
        let kind = object::text(&crd.object, "/spec/names/kind").unwrap_or_default();
        let group = object::text(&crd.object, "/spec/group").unwrap_or_default();
        if let Some(other) = kinds.insert((group, kind), name) {
            let message = format!("kind '{kind}' of group '{group}' is also defined by '{other}'");
            problems.push(crd.problem(
                &JsonPath::from_fields("spec.names.kind"),
                rule::CRD_KIND_CLASH,
                message,
            ));
        }
    }
}

fn check_owned(bundle: &Bundle, problems: &mut Vec<Problem>) {
    let list = JsonPath::from_fields("spec.customresourcedefinitions.owned");
    let owned = object::items(&bundle.csv.object, "/spec/customresourcedefinitions/owned");
    for (index, owned) in owned.iter().enumerate() {
        let path = list.item(index);
        let name = object::text(owned, "/name").unwrap_or_default();
        let Some(crd) = bundle.crds.iter().find(|crd| crd.name() == name) else {
            let message = format!(
                "cluster service definition references owned custom resource definition '{name}' not found in bundle"
            );
            problems.push(
                bundle
                    .csv
                    .problem(&path.field("name"), rule::CRD_MISSING, message),
            );
            continue;
        };
        let Some(version) = object::text(owned, "/version").filter(|version| !version.is_empty()) else {
            continue;
        };
        if !versions(crd).any(|(_, entry)| object::text(entry, "/name") == Some(version)) {
            let message = format!("owned custom resource definition '{name}' has no version '{version}'");
            problems.push(
                bundle
                    .csv
                    .problem(&path.field("version"), rule::CRD_MISSING, message),
            );
        }
    }
}

fn check_name(crd: &Manifest, problems: &mut Vec<Problem>) {
    let text = |pointer| object::text(&crd.object, pointer).unwrap_or_default();
    let (name, group) = (crd.name(), text("/spec/group"));
    let expected = format!("{}.{group}", text("/spec/names/plural"));
    let message = if name != expected {
        format!("custom resource definition '{name}' must be named '{expected}'")
    } else if !names::subdomain(name).is_empty() {
        format!(
            "invalid custom resource definition name '{name}': {}",
            names::subdomain(name).join(", ")
        )
    } else {
        return;
    };
    problems.push(crd.problem(&JsonPath::from_fields("metadata.name"), rule::CRD_NAME, message));
}

fn check_versions(crd: &Manifest, problems: &mut Vec<Problem>) {
    let name = crd.name();
    let list = JsonPath::from_fields("spec.versions");
    let mut seen = BTreeSet::new();
    let mut stored = Vec::new();
    for (path, entry) in versions(crd) {
        let version = object::text(entry, "/name").unwrap_or_default();
        let messages = names::service(version);
        if !messages.is_empty() {
            let messages = messages.join(", ");
            let message =
                format!("custom resource definition '{name}' has invalid version '{version}': {messages}");
            problems.push(crd.problem(&path.field("name"), rule::CRD_VERSIONS, message));
        }
        if !seen.insert(version) {
            let message = format!("custom resource definition '{name}' has duplicate version '{version}'");
            problems.push(crd.problem(&path.field("name"), rule::CRD_VERSIONS, message));
        }
        if entry["storage"] == true {
            stored.push(version);
        }
        if !entry["schema"]["openAPIV3Schema"].is_object() {
            let message = format!("version '{version}' of custom resource definition '{name}' has no schema");
            let path = path.field("schema").field("openAPIV3Schema");
            problems.push(crd.problem(&path, rule::CRD_SCHEMA, message));
        }
    }
    if stored.len() != 1 {
        let stored = stored.join(", ");
        let message =
            format!("custom resource definition '{name}' must store exactly one version, not [{stored}]");
        problems.push(crd.problem(&list, rule::CRD_VERSIONS, message));
    }
}

fn check_preserve_unknown_fields(bundle: &Bundle, crd: &Manifest, problems: &mut Vec<Problem>) {
    if crd.object["spec"]["preserveUnknownFields"] != true {
        return;
    }
    let name = crd.name();
    let message = if converted(bundle).contains(name) {
        format!(
            "custom resource definition '{name}' must have .spec.preserveUnknownFields set to false to let API Server \
             call webhook to do the conversion"
        )
    } else {
        format!("custom resource definition '{name}' must have .spec.preserveUnknownFields set to false")
    };
    let path = JsonPath::from_fields("spec.preserveUnknownFields");
    problems.push(crd.problem(&path, rule::CRD_PRESERVE_UNKNOWN_FIELDS, message));
}

/// KEP-1111: groups under `k8s.io` and `kubernetes.io` need an annotation that links to their approval.
fn check_group(crd: &Manifest, problems: &mut Vec<Problem>) {
    const ANNOTATION: &str = "api-approved.kubernetes.io";

    let group = object::text(&crd.object, "/spec/group").unwrap_or_default();
    let protected = ["k8s.io", "kubernetes.io"]
        .into_iter()
        .any(|suffix| group == suffix || group.ends_with(&format!(".{suffix}")));
    let approval = object::annotation(&crd.object, ANNOTATION).unwrap_or_default();
    if protected && approval.is_empty() {
        let message = format!(
            "custom resource definition '{}' of the protected group '{group}' must have annotation '{ANNOTATION}'",
            crd.name()
        );
        let path = JsonPath::from_fields("metadata.annotations").field(ANNOTATION);
        problems.push(crd.problem(&path, rule::CRD_PROTECTED_GROUP, message));
    }
}
