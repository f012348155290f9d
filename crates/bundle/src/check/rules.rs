//! Rules of admission webhooks: complete, and matching neither webhook configurations nor requests that the
//! bundle itself needs.

use serde_json::Value;
use windlass_object::{JsonPath, Problem, object};

use super::webhook_definitions::webhook_definitions;
use crate::{
    parse::{Bundle, InstallMode, WebhookDefinition, WebhookType, rule},
    requests::{self, Request, WatchedNamespaces},
};

/// Groups whose objects configure webhooks: OLM's, in its old and new spelling, and Windlass's.
const FORBIDDEN_GROUPS: [&str; 4] = [
    "*",
    "olm.operatorframework.io",
    "operators.coreos.com",
    "windlass.dev",
];

const ADMISSION_GROUP: &str = "admissionregistration.k8s.io";

/// Resources and kinds of webhook configurations, in lower case.
const FORBIDDEN_RESOURCES: [&str; 5] = [
    "*",
    "mutatingwebhookconfiguration",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfiguration",
    "validatingwebhookconfigurations",
];

pub(super) fn check(bundle: &Bundle, problems: &mut Vec<Problem>) {
    for (path, webhook) in webhook_definitions(bundle) {
        let Some(WebhookType::Mutating | WebhookType::Validating) = webhook.webhook_type() else {
            continue;
        };
        let name = webhook.generate_name();
        for (index, rule) in object::items(webhook.0, "/rules").iter().enumerate() {
            let path = path.field("rules").item(index);
            for message in rule_error(rule) {
                let message = format!("rule of webhook '{name}' {message}");
                problems.push(bundle.csv.problem(&path, rule::WEBHOOK_RULE, message));
            }
            let forbidden = check_forbidden(bundle, name, rule, &path, problems);
            // A forbidden rule needs no second error.
            if !forbidden && let Some(request) = always_blocked(bundle, webhook, rule) {
                let message = requests::blocking_message(name, &request);
                problems.push(bundle.csv.problem(&path, rule::WEBHOOK_RULE_BLOCKING, message));
            }
        }
    }
}

fn strings<'a>(rule: &'a Value, field: &str) -> impl Iterator<Item = &'a str> + Clone {
    let items = rule
        .get(field)
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    items.iter().filter_map(Value::as_str)
}

/// Returns why the API server rejects the rule (`validateRuleWithOperations`).
fn rule_error(rule: &Value) -> Vec<String> {
    const OPERATIONS: [&str; 5] = ["*", "CREATE", "UPDATE", "DELETE", "CONNECT"];

    let mut messages = Vec::new();
    for field in ["apiGroups", "apiVersions", "operations", "resources"] {
        let values = strings(rule, field);
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
    for operation in strings(rule, "operations").filter(|operation| !OPERATIONS.contains(operation)) {
        messages.push(format!("has unknown operation '{operation}'"));
    }
    let scope = object::text(rule, "/scope").unwrap_or_default();
    if !matches!(scope, "" | "*" | "Namespaced" | "Cluster") {
        messages.push(format!("has unknown scope '{scope}'"));
    }
    messages.extend(overlapping_resources(rule));
    messages
}

/// Returns wildcards that stand next to resources they already contain: `*/*`, `*`, `a/*` and `*/a`
/// (`validateResources`).
fn overlapping_resources(rule: &Value) -> Option<String> {
    let resources: Vec<&str> = strings(rule, "resources").collect();
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

/// Reports rules that match webhook configurations, in any spelling.
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
    for group in strings(rule, "apiGroups") {
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
        for resource in strings(rule, "resources") {
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

/// Returns the needed request that `rule` blocks in every install mode. An install refuses rules that block
/// one in some modes.
fn always_blocked(bundle: &Bundle, webhook: WebhookDefinition<'_>, rule: &Value) -> Option<Request> {
    let watched = |mode: &InstallMode| match mode {
        InstallMode::AllNamespaces => WatchedNamespaces::ALL,
        InstallMode::OwnNamespace => WatchedNamespaces {
            all: false,
            own: true,
        },
        InstallMode::SingleNamespace | InstallMode::MultiNamespace => WatchedNamespaces {
            all: false,
            own: false,
        },
    };
    let modes = bundle.csv().install_modes();
    // Another check reports that no mode is supported.
    let mut blocked = modes
        .iter()
        .map(|mode| requests::blocked(bundle, webhook, rule, watched(mode)));
    let first = blocked.next()??;
    blocked.all(|other| other.is_some()).then_some(first)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::render::sample;

    #[test]
    fn a_webhook_blocks_itself_if_it_does_in_every_install_mode() {
        let mut bundle = sample::bundle();
        bundle.csv.object["spec"]["webhookdefinitions"][2]["rules"] = json!([{"apiGroups": [""], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["pods"]}]);
        let mut blocks = |modes: &[&str]| {
            let modes: Vec<_> = modes
                .iter()
                .map(|mode| json!({"type": mode, "supported": true}))
                .collect();
            bundle.csv.object["spec"]["installModes"] = json!(modes);
            let mut problems = Vec::new();
            check(&bundle, &mut problems);
            problems
                .into_iter()
                .map(|problem| problem.rule)
                .collect::<Vec<_>>()
        };
        let blocking = [rule::WEBHOOK_RULE_BLOCKING.name];
        assert_eq!(blocks(&["AllNamespaces"]), blocking);
        assert_eq!(blocks(&["AllNamespaces", "OwnNamespace"]), blocking);
        assert_eq!(blocks(&["AllNamespaces", "SingleNamespace"]), [""; 0]);
        assert_eq!(blocks(&["MultiNamespace"]), [""; 0]);
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
            assert_eq!(rule_error(&rule), Vec::<String>::new(), "{rule}");
        }
    }
}
