//! The objects of a bundle: their kinds, and their names.

use std::collections::BTreeMap;

use windlass_object::{JsonPath, Problem, object};

use super::names;
use crate::{
    kinds::BundledKind,
    parse::{Bundle, Manifest, rule},
};

pub(super) fn check(bundle: &Bundle, problems: &mut Vec<Problem>) {
    check_kinds(bundle, problems);
    check_api_versions(bundle, problems);
    check_names(bundle, problems);
    check_duplicates(bundle, problems);
}

fn check_kinds(bundle: &Bundle, problems: &mut Vec<Problem>) {
    for manifest in &bundle.others {
        let (name, kind) = (manifest.name(), manifest.kind());
        if BundledKind::from_kind(kind).is_none() {
            let message = format!("unsupported resource \"{name}\" with kind \"{kind}\"");
            problems.push(manifest.problem(&JsonPath::from_fields("kind"), rule::UNSUPPORTED_KIND, message));
        }
    }
}

fn check_api_versions(bundle: &Bundle, problems: &mut Vec<Problem>) {
    for manifest in bundle.manifests() {
        if api_version(manifest).is_empty() {
            let message = format!("{} '{}' has no apiVersion", manifest.kind(), manifest.name());
            problems.push(manifest.problem(
                &JsonPath::from_fields("apiVersion"),
                rule::API_VERSION_MISSING,
                message,
            ));
        }
    }
}

/// ClusterServiceVersions and CustomResourceDefinitions have naming rules of their own.
fn check_names(bundle: &Bundle, problems: &mut Vec<Problem>) {
    for manifest in &bundle.others {
        let name = manifest.name();
        let messages = match manifest.kind() {
            "Role" | "RoleBinding" | "ClusterRole" | "ClusterRoleBinding" => names::path_segment(name),
            "Service" => names::service(name),
            _ => names::subdomain(name),
        };
        if !messages.is_empty() {
            let message = format!(
                "invalid name '{name}' of {}: {}",
                manifest.kind(),
                messages.join(", ")
            );
            problems.push(manifest.problem(
                &JsonPath::from_fields("metadata.name"),
                rule::OBJECT_NAME,
                message,
            ));
        }
    }
}

fn check_duplicates(bundle: &Bundle, problems: &mut Vec<Problem>) {
    let mut seen: BTreeMap<_, &Manifest> = BTreeMap::new();
    for manifest in &bundle.others {
        let (group, _) = object::group_and_version(api_version(manifest));
        let key = (group, manifest.kind(), manifest.name());
        let Some(first) = seen.get(&key) else {
            seen.insert(key, manifest);
            continue;
        };
        let message = format!(
            "{} '{}' is also in {}",
            manifest.kind(),
            manifest.name(),
            first.file
        );
        problems.push(manifest.problem(
            &JsonPath::from_fields("metadata.name"),
            rule::OBJECT_DUPLICATE,
            message,
        ));
    }
}

fn api_version(manifest: &Manifest) -> &str {
    object::text(&manifest.object, "/apiVersion").unwrap_or_default()
}
