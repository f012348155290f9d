//! Whether a webhook is asked about a request, and in which version of the object.

use serde_json::Value;

use super::{
    request::{ReviewRequest, ServedVersion},
    selector,
};

impl ServedVersion {
    /// `group/version`, or only the version for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// The version in which `webhook` wants to see the object; `None` when the request does not concern it.
pub(super) fn version(webhook: &Value, request: &ReviewRequest) -> Option<ServedVersion> {
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
    selected(webhook, request).then_some(wanted)
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
                .any(|entry| names(entry, request))
        })
}

/// Whether an entry of `resources` (`pods`, `pods/status`, `*`, `*/*`, `pods/*`, `*/scale`) names the request's.
fn names(entry: &str, request: &ReviewRequest) -> bool {
    let (resource, subresource) = entry.split_once('/').unwrap_or((entry, ""));
    (resource == "*" || resource == request.resource.resource)
        && match subresource {
            "*" => true,
            named => named == request.resource.subresource,
        }
}

/// The webhook's namespaceSelector and objectSelector.
fn selected(webhook: &Value, request: &ReviewRequest) -> bool {
    let namespaced = !request.namespace.is_empty() || request.kind == "Namespace";
    if namespaced && !selector::matches(&webhook["namespaceSelector"], &request.namespace_labels) {
        return false;
    }
    let chosen = |object: &Value| {
        !object.is_null() && selector::matches(&webhook["objectSelector"], &object["metadata"]["labels"])
    };
    chosen(&request.object) || chosen(&request.old_object)
}
