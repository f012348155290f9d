//! Finds webhooks that block requests that their own bundle needs.

use std::fmt::Display;

use serde_json::Value;
use windlass_object::object;

use super::{
    needed::needed,
    request::{Place, Request, WatchedNamespaces},
};
use crate::parse::{Bundle, WebhookDefinition};

/// Returns the first request of the bundle that `rule` of `webhook` matches, if the webhook fails closed.
pub(crate) fn blocked(
    bundle: &Bundle,
    webhook: WebhookDefinition<'_>,
    rule: &Value,
    watched: WatchedNamespaces,
) -> Option<Request> {
    if object::text(webhook.0, "/failurePolicy") == Some("Ignore") {
        return None;
    }
    let selector = webhook.0.get("objectSelector");
    let matches = |request: &Request| {
        watched.holds(request.place) && covers(rule, request) && request.labels.may_match(selector)
    };
    needed(bundle, watched).into_iter().find(matches)
}

/// Returns the message about a webhook that blocks `request`.
pub(crate) fn blocking_message(webhook: &str, request: &impl Display) -> String {
    format!(
        "webhook '{webhook}' blocks itself: with failurePolicy Fail it matches {request}, which its own bundle needs to start \
         again: exclude these objects with objectSelector, or set failurePolicy: Ignore; to install it anyway, use \
         --allow-blocking-webhooks, or spec.allowBlockingWebhooks"
    )
}

/// Reports whether a rule matches a request. Versions are ignored: by default a webhook is called for all of
/// them.
fn covers(rule: &Value, request: &Request) -> bool {
    let any = |pointer: &str, fits: &dyn Fn(&str) -> bool| {
        object::items(rule, pointer)
            .iter()
            .filter_map(Value::as_str)
            .any(fits)
    };
    let scope = match object::text(rule, "/scope") {
        Some("Cluster") => request.place == Place::Cluster,
        Some("Namespaced") => request.place != Place::Cluster,
        _ => true,
    };
    scope
        && any("/apiGroups", &|group| group == "*" || group == request.group)
        && any("/operations", &|operation| {
            operation == "*" || operation == request.operation
        })
        && any("/resources", &|resource| {
            covers_resource(resource, &request.resource)
        })
}

/// Reports whether a rule's resource, which may be a wildcard, includes `resource`.
fn covers_resource(own: &str, resource: &str) -> bool {
    let (parent, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let (own_parent, own_subresource) = own.split_once('/').unwrap_or((own, ""));
    (own_parent == "*" || own_parent == parent) && (own_subresource == "*" || own_subresource == subresource)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::render::sample;

    /// Returns the needed requests that a webhook with these fields and this rule blocks.
    fn blocks(bundle: &Bundle, webhook: Value, rule: &Value, watched: WatchedNamespaces) -> Option<String> {
        blocked(bundle, WebhookDefinition(&webhook), rule, watched).map(|request| request.to_string())
    }

    fn rule(group: &str, resource: &str, operation: &str) -> Value {
        json!({"apiGroups": [group], "resources": [resource], "operations": [operation]})
    }

    /// A bundle with a ConfigMap and namespaced permissions.
    fn bundle() -> Bundle {
        let mut bundle = sample::bundle();
        bundle.csv.object["spec"]["install"]["spec"]["permissions"] =
            json!([{"serviceAccountName": "widgets", "rules": []}]);
        bundle.others = vec![sample::manifest(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"keep": "out"}},
        }))];
        bundle
    }

    #[test]
    fn requests_that_the_bundle_needs_to_restart_may_not_be_blocked() {
        let bundle = bundle();
        for (rule, expected) in [
            (rule("", "pods", "CREATE"), Some("CREATE of pods")),
            (rule("", "*", "*"), Some("CREATE of pods")),
            (rule("", "*/*", "UPDATE"), Some("UPDATE of pods/status")),
            (rule("", "pods/*", "UPDATE"), Some("UPDATE of pods/status")),
            (rule("", "nodes/*", "*"), Some("UPDATE of nodes/status")),
            (
                rule("apps", "deployments", "CREATE"),
                Some("CREATE of deployments of apps"),
            ),
            (
                rule("apps", "deployments", "UPDATE"),
                Some("UPDATE of deployments of apps"),
            ),
            (
                rule("apps", "replicasets", "*"),
                Some("CREATE of replicasets of apps"),
            ),
            (rule("", "services", "CREATE"), Some("CREATE of services")),
            (
                rule("", "serviceaccounts", "CREATE"),
                Some("CREATE of serviceaccounts"),
            ),
            (rule("", "configmaps", "CREATE"), Some("CREATE of configmaps")),
            (rule("", "configmaps", "UPDATE"), Some("UPDATE of configmaps")),
            (rule("", "secrets", "UPDATE"), Some("UPDATE of secrets")),
            (
                rule("discovery.k8s.io", "*", "*"),
                Some("CREATE of endpointslices of discovery.k8s.io"),
            ),
            (
                rule(RBAC, "clusterrolebindings", "UPDATE"),
                Some("UPDATE of clusterrolebindings of rbac.authorization.k8s.io"),
            ),
            (rule(RBAC, "roles", "*"), None),
            (rule("", "persistentvolumes", "*"), None),
            (rule("", "pods", "DELETE"), None),
            (rule("apps", "pods", "CREATE"), None),
        ] {
            let found = blocks(&bundle, json!({}), &rule, WatchedNamespaces::ALL);
            assert_eq!(found.as_deref(), expected, "{rule}");
            let ignored = blocks(
                &bundle,
                json!({"failurePolicy": "Ignore"}),
                &rule,
                WatchedNamespaces::ALL,
            );
            assert_eq!(ignored, None, "{rule}");
        }
        let without = sample::bundle();
        let config_maps = rule("", "configmaps", "*");
        assert_eq!(
            blocks(&without, json!({}), &config_maps, WatchedNamespaces::ALL),
            None
        );
    }

    const RBAC: &str = "rbac.authorization.k8s.io";

    #[test]
    fn an_object_selector_can_exclude_the_needed_objects() {
        let bundle = bundle();
        let expression = |key: &str, operator: &str| json!({"objectSelector": {"matchExpressions": [{"key": key, "operator": operator}]}});
        for (group, resource, webhook, expected) in [
            ("", "pods", json!({"objectSelector": {}}), true),
            ("", "pods", expression("other", "Exists"), false),
            ("", "pods", expression("other", "DoesNotExist"), true),
            ("", "pods", expression("app", "Exists"), true),
            ("", "pods", expression("app", "DoesNotExist"), false),
            ("", "pods", expression("pod-template-hash", "Exists"), true),
            ("", "pods/binding", expression("app", "DoesNotExist"), true),
            ("apps", "deployments", expression("app", "DoesNotExist"), false),
            (
                "apps",
                "deployments",
                expression("windlass.dev/bundle-deployment", "DoesNotExist"),
                false,
            ),
            ("", "configmaps", expression("keep", "DoesNotExist"), false),
            ("", "configmaps", expression("keep", "Exists"), true),
        ] {
            let found = blocks(
                &bundle,
                webhook.clone(),
                &rule(group, resource, "*"),
                WatchedNamespaces::ALL,
            );
            assert_eq!(found.is_some(), expected, "{resource} {webhook}: {found:?}");
        }
    }

    #[test]
    fn webhooks_match_watched_namespaces_and_cluster_scoped_objects() {
        let bundle = bundle();
        let own = WatchedNamespaces {
            all: false,
            own: true,
        };
        let others = WatchedNamespaces {
            all: false,
            own: false,
        };
        for (rule, in_own, in_others) in [
            (rule("", "pods", "CREATE"), true, false),
            (rule("", "secrets", "*"), true, false),
            (rule(RBAC, "roles", "CREATE"), true, true),
            (rule(RBAC, "clusterroles", "CREATE"), true, true),
            (rule("coordination.k8s.io", "leases", "*"), false, false),
            (rule("", "nodes/status", "*"), true, true),
        ] {
            assert_eq!(blocks(&bundle, json!({}), &rule, own).is_some(), in_own, "{rule}");
            assert_eq!(
                blocks(&bundle, json!({}), &rule, others).is_some(),
                in_others,
                "{rule}"
            );
        }
        let mut namespaced = rule("", "*/*", "*");
        namespaced["scope"] = json!("Namespaced");
        assert_eq!(blocks(&bundle, json!({}), &namespaced, others), None);
    }
}
