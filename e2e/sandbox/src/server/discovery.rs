//! Discovery of the served resources, plain and aggregated.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    call::{Call, Reply},
    kinds::{Kinds, ServedResource},
    object_errors::not_found_path,
    reviews::REVIEWS,
};
use crate::StatusError;

/// The verbs of a resource.
const VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// The same verbs in the order in which the real server lists them for custom resources.
const CUSTOM_VERBS: &[&str] = &[
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
];

/// Handles a discovery request; returns `None` for other paths.
///
/// # Errors
///
/// 404 for a group or version that is not served.
pub(super) fn reply(kinds: &Kinds, call: &Call) -> Result<Option<Reply>, StatusError> {
    let aggregated = ["v2", "v2beta1"]
        .into_iter()
        .find(|version| asks_for_aggregated(&call.accept, version));
    let parts: Vec<&str> = call.path.trim_matches('/').split('/').collect();
    let body = match (parts.as_slice(), aggregated) {
        (["api"], Some(version)) => aggregate(kinds, version, true),
        (["apis"], Some(version)) => aggregate(kinds, version, false),
        (["api"], None) => {
            json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
        }
        (["apis"], None) => {
            let groups: Vec<Value> = groups(kinds, false)
                .iter()
                .map(|(name, versions)| group(name, versions))
                .collect();
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        }
        (["apis", name], _) => {
            let groups = groups(kinds, false);
            let (name, versions) = groups
                .iter()
                .find(|(group, _)| group == name)
                .ok_or_else(not_found_path)?;
            let mut body = group(name, versions);
            body["kind"] = json!("APIGroup");
            body["apiVersion"] = json!("v1");
            body
        }
        (["api", version], _) => resources(kinds, "", version)?,
        (["apis", group, version], _) => resources(kinds, group, version)?,
        _ => return Ok(None),
    };
    Ok(Some(Reply::json(body)))
}

fn asks_for_aggregated(accept: &str, version: &str) -> bool {
    accept.split(',').any(|part| {
        let mut parameters = part.split(';').map(str::trim);
        parameters
            .clone()
            .any(|parameter| parameter == "as=APIGroupDiscoveryList")
            && parameters.any(|parameter| parameter.strip_prefix("v=") == Some(version))
    })
}

/// Returns each group's versions in order of preference, with their resources.
type Versions = Vec<(String, Vec<ServedResource>)>;

fn groups(kinds: &Kinds, core: bool) -> Vec<(String, Versions)> {
    let mut order: Vec<String> = Vec::new();
    let mut groups: BTreeMap<String, Versions> = BTreeMap::new();
    let reviews = REVIEWS
        .iter()
        .map(|(group, ..)| ((*group).to_owned(), "v1".to_owned(), None));
    let served = kinds
        .all()
        .into_iter()
        .map(|served| (served.group.clone(), served.version.clone(), Some(served)));
    for (group, version, served) in served.chain(reviews) {
        if group.is_empty() != core {
            continue;
        }
        if !groups.contains_key(&group) {
            order.push(group.clone());
        }
        let versions = groups.entry(group).or_default();
        if !versions.iter().any(|(known, _)| *known == version) {
            versions.push((version.clone(), Vec::new()));
        }
        let entry = versions.iter_mut().find(|(known, _)| *known == version);
        if let (Some((_, resources)), Some(served)) = (entry, served) {
            resources.push(served);
        }
    }
    for versions in groups.values_mut() {
        versions.sort_by(|(a, _), (b, _)| crate::crd::compare_versions(a, b));
    }
    order
        .into_iter()
        .filter_map(|name| groups.remove(&name).map(|versions| (name, versions)))
        .collect()
}

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

fn group(name: &str, versions: &Versions) -> Value {
    let entries: Vec<Value> = versions
        .iter()
        .map(|(version, _)| json!({"groupVersion": api_version(name, version), "version": version}))
        .collect();
    json!({"name": name, "versions": entries, "preferredVersion": entries.first()})
}

/// Returns an `APIResourceList`.
fn resources(kinds: &Kinds, group: &str, version: &str) -> Result<Value, StatusError> {
    let groups = groups(kinds, group.is_empty());
    let versions = groups
        .iter()
        .find(|(name, _)| name == group)
        .map(|(_, versions)| versions);
    let found = versions.and_then(|versions| versions.iter().find(|(name, _)| name == version));
    let (_, served) = found.ok_or_else(not_found_path)?;
    let mut list = Vec::new();
    for served in served {
        let mut entry = json!({
            "name": served.resource, "singularName": served.singular, "namespaced": served.namespaced,
            "kind": served.kind, "verbs": VERBS, "storageVersionHash": hash(served),
        });
        for (field, words) in [
            ("shortNames", &served.short_names),
            ("categories", &served.categories),
        ] {
            if !words.is_empty() {
                entry[field] = json!(words);
            }
        }
        list.push(entry);
        for subresource in &served.subresources {
            let (kind, verbs) = subresource_kind(served, subresource);
            let mut entry = json!({
                "name": format!("{}/{subresource}", served.resource), "singularName": "",
                "namespaced": served.namespaced, "kind": kind.1, "verbs": verbs,
            });
            if let Some((group, version)) = kind.0 {
                entry["group"] = json!(group);
                entry["version"] = json!(version);
            }
            list.push(entry);
        }
    }
    for (_, kind, resource, namespaced) in REVIEWS.iter().filter(|row| row.0 == group) {
        list.push(
            json!({"name": resource, "singularName": kind.to_lowercase(), "namespaced": namespaced,
                         "kind": kind, "verbs": ["create"]}),
        );
    }
    Ok(
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version(group, version), "resources": list}),
    )
}

/// Returns the group and version of a subresource if they differ from the object's, its kind and its verbs.
#[expect(clippy::type_complexity, reason = "one row of a table")]
fn subresource_kind<'a>(
    served: &'a ServedResource,
    subresource: &str,
) -> (
    (Option<(&'static str, &'static str)>, &'a str),
    &'static [&'static str],
) {
    match subresource {
        "scale" => (
            (Some(("autoscaling", "v1")), "Scale"),
            &["get", "patch", "update"],
        ),
        "eviction" => ((Some(("policy", "v1")), "Eviction"), &["create"]),
        "token" => (
            (Some(("authentication.k8s.io", "v1")), "TokenRequest"),
            &["create"],
        ),
        "binding" => ((None, "Binding"), &["create"]),
        "finalize" => ((None, &served.kind), &["update"]),
        _ => ((None, &served.kind), &["get", "patch", "update"]),
    }
}

/// Returns a hash that changes with the storage version.
fn hash(served: &ServedResource) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use sha2::{Digest, Sha256};
    let text = format!(
        "{}/{}/{}",
        served.group,
        served.storage_api_version(),
        served.kind
    );
    STANDARD.encode(&Sha256::digest(text)[..8])
}

/// Returns an `APIGroupDiscoveryList` (KEP-3352).
fn aggregate(kinds: &Kinds, version: &str, core: bool) -> Value {
    let items: Vec<Value> = groups(kinds, core)
        .iter()
        .map(|(name, versions)| {
            let mut metadata = json!({"creationTimestamp": null});
            if !name.is_empty() {
                metadata["name"] = json!(name);
            }
            let versions: Vec<Value> = versions
                .iter()
                .map(|(version, served)| {
                    let mut resources: Vec<Value> =
                        served.iter().map(|served| aggregated_resource(name, version, served)).collect();
                    let reviews = REVIEWS.iter().filter(|row| row.0 == name);
                    resources.extend(reviews.map(|(_, kind, resource, namespaced)| {
                        json!({"resource": resource, "singularResource": kind.to_lowercase(), "verbs": ["create"],
                               "responseKind": {"group": name, "version": version, "kind": kind},
                               "scope": if *namespaced { "Namespaced" } else { "Cluster" }})
                    }));
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{version}"),
           "metadata": {}, "items": items})
}

fn aggregated_resource(group: &str, version: &str, served: &ServedResource) -> Value {
    let mut entry = json!({
        "resource": served.resource, "singularResource": served.singular,
        "verbs": if served.definition.is_some() { CUSTOM_VERBS } else { VERBS },
        "responseKind": {"group": group, "version": version, "kind": served.kind},
        "scope": if served.namespaced { "Namespaced" } else { "Cluster" },
    });
    for (field, words) in [
        ("shortNames", &served.short_names),
        ("categories", &served.categories),
    ] {
        if !words.is_empty() {
            entry[field] = json!(words);
        }
    }
    let subresources: Vec<Value> = served
        .subresources
        .iter()
        .map(|subresource| {
            let ((other, kind), verbs) = subresource_kind(served, subresource);
            let (group, version) = other.unwrap_or((group, version));
            json!({"subresource": subresource, "verbs": verbs,
                   "responseKind": {"group": group, "version": version, "kind": kind}})
        })
        .collect();
    if !subresources.is_empty() {
        entry["subresources"] = subresources.into();
    }
    entry
}
