//! Rules of admission webhooks: complete, not about what installs webhooks, not about what the webhook itself needs.

use serde_json::Value;
use windlass_object::{JsonPath, Problem, object};

use super::webhook_definitions::webhook_definitions;
use crate::parse::{Bundle, WebhookDefinition, WebhookType, rule};

/// Groups whose objects decide which webhooks there are: OLM's, in its old and new spelling, and our own.
const FORBIDDEN_GROUPS: [&str; 4] = [
    "*",
    "olm.operatorframework.io",
    "operators.coreos.com",
    "windlass.dev",
];

const ADMISSION_GROUP: &str = "admissionregistration.k8s.io";

/// Webhook configurations as resources and as kinds, in lower case.
const FORBIDDEN_RESOURCES: [&str; 5] = [
    "*",
    "mutatingwebhookconfiguration",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfiguration",
    "validatingwebhookconfigurations",
];

/// What must be possible for the pod behind a webhook to come up, get its certificate and be found: a webhook that is
/// asked about it, must answer, and does not run, never runs again. Group, resource and operation.
const NEEDED: [(&str, &str, &str); 13] = [
    ("", "nodes/status", "UPDATE"),
    ("", "pods", "CREATE"),
    ("", "pods/binding", "CREATE"),
    ("", "pods/status", "UPDATE"),
    ("", "secrets", "CREATE"),
    ("", "secrets", "UPDATE"),
    ("", "serviceaccounts/token", "CREATE"),
    ("apps", "deployments", "UPDATE"),
    ("apps", "replicasets", "CREATE"),
    ("apps", "replicasets", "UPDATE"),
    ("apiextensions.k8s.io", "customresourcedefinitions", "UPDATE"),
    ("coordination.k8s.io", "leases", "UPDATE"),
    ("discovery.k8s.io", "endpointslices", "UPDATE"),
];

pub(super) fn check(bundle: &Bundle, problems: &mut Vec<Problem>) {
    for (path, webhook) in webhook_definitions(bundle) {
        let Some(WebhookType::Mutating | WebhookType::Validating) = webhook.webhook_type() else {
            continue;
        };
        let name = webhook.generate_name();
        for (index, rule) in object::items(webhook.0, "/rules").iter().enumerate() {
            let path = path.field("rules").item(index);
            for message in incomplete(rule) {
                let message = format!("rule of webhook '{name}' {message}");
                problems.push(bundle.csv.problem(&path, rule::WEBHOOK_RULE, message));
            }
            let forbidden = check_forbidden(bundle, name, rule, &path, problems);
            // What may not be matched at all needs no second reason.
            if !forbidden && let Some(request) = blocking(webhook, rule) {
                let message = format!(
                    "webhook '{name}' blocks itself: with failurePolicy Fail and no objectSelector it matches \
                     {request}, which its own pods need"
                );
                problems.push(bundle.csv.problem(&path, rule::WEBHOOK_RULE_BLOCKING, message));
            }
        }
    }
}

/// The strings of a list in `rule`.
fn texts<'a>(rule: &'a Value, field: &str) -> impl Iterator<Item = &'a str> + Clone {
    let items = rule
        .get(field)
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    items.iter().filter_map(Value::as_str)
}

/// What the API server would refuse (`validateRuleWithOperations`).
fn incomplete(rule: &Value) -> Vec<String> {
    const OPERATIONS: [&str; 5] = ["*", "CREATE", "UPDATE", "DELETE", "CONNECT"];

    let mut messages = Vec::new();
    for field in ["apiGroups", "apiVersions", "operations", "resources"] {
        let values = texts(rule, field);
        if values.clone().next().is_none() {
            messages.push(format!("has no {field}"));
        }
        let wildcards = values.clone().filter(|value| *value == "*").count();
        if field != "resources" && wildcards > 0 && values.clone().count() > 1 {
            messages.push(format!("has '*' and other {field}"));
        }
        if field != "apiGroups" && values.clone().any(str::is_empty) {
            messages.push(format!("has an empty string in {field}"));
        }
    }
    for operation in texts(rule, "operations").filter(|operation| !OPERATIONS.contains(operation)) {
        messages.push(format!("has unknown operation '{operation}'"));
    }
    let scope = object::text(rule, "/scope").unwrap_or_default();
    if !matches!(scope, "" | "*" | "Namespaced" | "Cluster") {
        messages.push(format!("has unknown scope '{scope}'"));
    }
    messages.extend(overlapping_resources(rule));
    messages
}

/// `*/*` and `*`, `a/*` and `*/a` with what they already hold (`validateResources`).
fn overlapping_resources(rule: &Value) -> Option<String> {
    let resources: Vec<&str> = texts(rule, "resources").collect();
    let has = |resource: &str| resources.contains(&resource);
    if has("*/*") && resources.len() > 1 {
        return Some("has '*/*' and other resources".to_owned());
    }
    if has("*")
        && resources
            .iter()
            .any(|resource| *resource != "*" && !resource.contains('/'))
    {
        return Some("has '*' and other resources without subresource".to_owned());
    }
    let covered = |resource: &&&str| {
        let Some((parent, subresource)) = resource.split_once('/') else {
            return false;
        };
        (subresource != "*" && has(&format!("{parent}/*")))
            || (parent != "*" && has(&format!("*/{subresource}")))
    };
    resources
        .iter()
        .find(covered)
        .map(|resource| format!("has resource '{resource}' and a wildcard for it"))
}

/// Reports rules about what configures webhooks, in every spelling that reaches it.
fn check_forbidden(
    bundle: &Bundle,
    name: &str,
    rule: &Value,
    path: &JsonPath,
    problems: &mut Vec<Problem>,
) -> bool {
    let prefix = format!("webhook \"{name}\" contains forbidden rule: admission webhook rules");
    let before = problems.len();
    let mut problem = |field: &str, message: String| {
        problems.push(
            bundle
                .csv
                .problem(&path.field(field), rule::WEBHOOK_RULE_FORBIDDEN, message),
        );
    };
    for group in texts(rule, "apiGroups") {
        let lower = group.to_ascii_lowercase();
        if FORBIDDEN_GROUPS.contains(&lower.as_str()) {
            problem(
                "apiGroups",
                format!("{prefix} cannot reference API group \"{group}\""),
            );
        }
        if lower != ADMISSION_GROUP {
            continue;
        }
        for resource in texts(rule, "resources") {
            let lower = resource.to_ascii_lowercase();
            let parent = lower.split_once('/').map_or(lower.as_str(), |(parent, _)| parent);
            if FORBIDDEN_RESOURCES.contains(&parent) {
                let message =
                    format!("{prefix} cannot reference resource \"{resource}\" for API group \"{group}\"");
                problem("resources", message);
            }
        }
    }
    problems.len() > before
}

/// The first thing in `rule` that the webhook's own pods need, if every such request needs an answer.
fn blocking(webhook: WebhookDefinition<'_>, rule: &Value) -> Option<String> {
    let must_answer = !matches!(object::text(webhook.0, "/failurePolicy"), Some("Ignore"));
    let selector = webhook.0.get("objectSelector").and_then(Value::as_object);
    if !must_answer || selector.is_some_and(|selector| !selector.is_empty()) {
        return None;
    }
    let matches = |(group, resource, operation): &&(&str, &str, &str)| {
        texts(rule, "apiGroups").any(|own| own == *group)
            && texts(rule, "operations").any(|own| own == "*" || own == *operation)
            && texts(rule, "resources").any(|own| covers(own, resource))
    };
    let (group, resource, operation) = NEEDED.iter().find(matches)?;
    let of_group = if group.is_empty() {
        String::new()
    } else {
        format!(" of {group}")
    };
    Some(format!("{operation} of {resource}{of_group}"))
}

/// Whether a rule's resource, which may have wildcards, is or holds `resource`.
fn covers(own: &str, resource: &str) -> bool {
    let (parent, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let (own_parent, own_subresource) = own.split_once('/').unwrap_or((own, ""));
    (own_parent == "*" || own_parent == parent) && (own_subresource == "*" || own_subresource == subresource)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_webhook_blocks_itself_only_where_it_must_answer_for_what_its_pods_need() {
        let rule = |group: &str, resource: &str, operation: &str| json!({"apiGroups": [group], "resources": [resource], "operations": [operation]});
        let pods = || rule("", "pods", "CREATE");
        for (webhook, rule, blocks) in [
            (json!({}), pods(), Some("CREATE of pods")),
            (
                json!({"failurePolicy": "Fail", "objectSelector": {}}),
                pods(),
                Some("CREATE of pods"),
            ),
            (json!({"failurePolicy": "Ignore"}), pods(), None),
            (
                json!({"objectSelector": {"matchLabels": {"a": "b"}}}),
                pods(),
                None,
            ),
            (json!({}), rule("", "*", "*"), Some("CREATE of pods")),
            (
                json!({}),
                rule("", "*/*", "UPDATE"),
                Some("UPDATE of nodes/status"),
            ),
            (
                json!({}),
                rule("", "pods/*", "UPDATE"),
                Some("UPDATE of pods/status"),
            ),
            (json!({}), rule("", "pods", "DELETE"), None),
            (json!({}), rule("", "configmaps", "CREATE"), None),
            (json!({}), rule("apps", "pods", "CREATE"), None),
            (
                json!({}),
                rule("discovery.k8s.io", "*", "*"),
                Some("UPDATE of endpointslices of discovery.k8s.io"),
            ),
        ] {
            assert_eq!(
                blocking(WebhookDefinition(&webhook), &rule).as_deref(),
                blocks,
                "{webhook} {rule}"
            );
        }
    }

    #[test]
    fn wildcards_that_the_api_server_accepts_are_accepted() {
        for resources in [
            json!(["*"]),
            json!(["*/*"]),
            json!(["*", "*/scale"]),
            json!(["pods", "pods/*"]),
            json!(["a/b"]),
        ] {
            let rule = json!({
                "apiGroups": [""], "apiVersions": ["*"], "operations": ["*"], "resources": resources, "scope": "*",
            });
            assert_eq!(incomplete(&rule), Vec::<String>::new(), "{rule}");
        }
    }
}
