//! Decides whether a webhook matches a request, and in which version of the object.

use serde_json::Value;

use super::{
    request::{ReviewRequest, ServedVersion},
    selector,
};

impl ServedVersion {
    /// Returns `group/version`, or only the version for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// Returns the version in which `webhook` receives the object; `None` when the webhook does not match the
/// request.
pub(super) fn matched_version(webhook: &Value, request: &ReviewRequest) -> Option<ServedVersion> {
    let own = ServedVersion {
        group: request.resource.group.clone(),
        version: request.resource.version.clone(),
    };
    let equivalent = webhook["matchPolicy"] != "Exact";
    let others = request.equivalents.iter().filter(|_| equivalent).cloned();
    let rules = webhook["rules"].as_array()?;
    let wanted = std::iter::once(own)
        .chain(others)
        .find(|version| rules.iter().any(|rule| rule_matches(rule, request, version)))?;
    selectors_match(webhook, request).then_some(wanted)
}

fn rule_matches(rule: &Value, request: &ReviewRequest, version: &ServedVersion) -> bool {
    let holds = |list: &str, value: &str| {
        rule[list]
            .as_array()
            .is_some_and(|entries| entries.iter().any(|entry| entry == "*" || entry == value))
    };
    let scope = match rule["scope"].as_str() {
        Some("Namespaced") => !request.namespace.is_empty() && request.kind != "Namespace",
        Some("Cluster") => request.namespace.is_empty() || request.kind == "Namespace",
        _ => true,
    };
    scope
        && holds("operations", request.operation)
        && holds("apiGroups", &version.group)
        && holds("apiVersions", &version.version)
        && rule["resources"].as_array().is_some_and(|entries| {
            entries
                .iter()
                .filter_map(Value::as_str)
                .any(|entry| names_resource(entry, request))
        })
}

/// Reports whether an entry of `resources` (`pods`, `pods/status`, `*`, `*/*`, `pods/*`, `*/scale`) matches
/// the requested resource.
fn names_resource(entry: &str, request: &ReviewRequest) -> bool {
    let (resource, subresource) = entry.split_once('/').unwrap_or((entry, ""));
    (resource == "*" || resource == request.resource.resource)
        && match subresource {
            "*" => true,
            named => named == request.resource.subresource,
        }
}

/// Evaluates the webhook's namespaceSelector and objectSelector.
fn selectors_match(webhook: &Value, request: &ReviewRequest) -> bool {
    let namespaced = !request.namespace.is_empty() || request.kind == "Namespace";
    if namespaced && !selector::matches(&webhook["namespaceSelector"], &request.namespace_labels) {
        return false;
    }
    let chosen = |object: &Value| {
        !object.is_null() && selector::matches(&webhook["objectSelector"], &object["metadata"]["labels"])
    };
    chosen(&request.object) || chosen(&request.old_object)
}
