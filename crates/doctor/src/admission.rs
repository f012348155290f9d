//! Foreign webhooks that can block Windlass itself.

use serde_json::Value;
use windlass_object::{ObjectKey, label_selector, object};

use crate::{check::DoctorCheck, finding::DoctorFinding};

/// What Windlass must be able to write in its namespace: group, resource, operation.
const VITAL: [(&str, &str, &str); 3] = [
    ("coordination.k8s.io", "leases", "UPDATE"),
    ("", "pods", "CREATE"),
    ("", "secrets", "UPDATE"),
];

/// Finds webhooks of a configuration that intercept Windlass's own Lease, pods or Secrets and reject them
/// while their server is down. `labels` are those of the namespace of Windlass.
pub fn intercepts_windlass(configuration: &Value, namespace: &str, labels: &Value) -> Option<DoctorFinding> {
    let key = ObjectKey::from_object(configuration)?;
    let mut asked: Vec<&str> = Vec::new();
    let mut webhooks: Vec<&str> = Vec::new();
    for webhook in object::items(configuration, "/webhooks") {
        let text = |pointer| object::text(webhook, pointer);
        let is_own = text("/clientConfig/service/namespace") == Some(namespace);
        let is_lenient = text("/failurePolicy") == Some("Ignore");
        // It is unknown what objectSelector and matchConditions exclude.
        let is_narrowed = !object::items(webhook, "/matchConditions").is_empty()
            || webhook
                .get("objectSelector")
                .is_some_and(|selector| !is_everything(selector));
        let selector = webhook.get("namespaceSelector");
        let is_elsewhere = selector.is_some_and(|selector| !label_selector::matches(selector, labels));
        if is_own || is_lenient || is_narrowed || is_elsewhere {
            continue;
        }
        let rules = object::items(webhook, "/rules");
        let found = VITAL
            .iter()
            .filter(|vital| rules.iter().any(|rule| matches(rule, vital)))
            .map(|(_, resource, _)| *resource);
        let found: Vec<_> = found.collect();
        if !found.is_empty() {
            webhooks.extend(text("/name"));
        }
        asked.extend(found);
    }
    asked.sort_unstable();
    asked.dedup();
    if asked.is_empty() {
        return None;
    }
    let message = format!(
        "webhook {} intercepts {} in namespace {namespace} with failurePolicy Fail: while its server is down, Windlass can neither start nor become leader; \
         exclude that namespace with its namespaceSelector (kubernetes.io/metadata.name)",
        webhooks.join(", "),
        asked.join(", ")
    );
    Some(DoctorCheck::AsksAboutWindlass.warning(key, message))
}

fn is_everything(selector: &Value) -> bool {
    selector.as_object().is_none_or(serde_json::Map::is_empty)
}

/// Reports whether a rule applies to a resource, excluding subresources.
fn matches(rule: &Value, (group, resource, operation): &(&str, &str, &str)) -> bool {
    let has = |field: &str, words: &[&str]| {
        let mut said = object::items(rule, field).iter().filter_map(Value::as_str);
        said.any(|said| words.contains(&said))
    };
    object::text(rule, "/scope") != Some("Cluster")
        && has("/apiGroups", &["*", group])
        && has("/resources", &["*", "*/*", resource])
        && has("/operations", &["*", operation])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(change: &[(&str, Value)]) -> Option<String> {
        let mut webhook = json!({
            "name": "all.example.com", "failurePolicy": "Fail", "namespaceSelector": {}, "objectSelector": {},
            "clientConfig": {"service": {"namespace": "others", "name": "hook"}},
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "operations": ["CREATE", "UPDATE"], "scope": "*"}],
        });
        for (field, value) in change {
            webhook[*field] = value.clone();
        }
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "policies"}, "webhooks": [webhook],
        });
        let labels = json!({"kubernetes.io/metadata.name": "windlass-system"});
        intercepts_windlass(&configuration, "windlass-system", &labels).map(|found| found.message)
    }

    #[test]
    fn exempting_windlass_avoids_the_warning() {
        let all = found(&[]).unwrap();
        assert!(
            all.contains("intercepts leases, pods, secrets in namespace windlass-system"),
            "{all}"
        );
        let exempt = json!({"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["windlass-system"]},
        ]});
        let rule = |group: &str, resource: &str, operation: &str| json!([{"apiGroups": [group], "resources": [resource], "operations": [operation]}]);
        for change in [
            ("failurePolicy", json!("Ignore")),
            ("namespaceSelector", exempt),
            ("objectSelector", json!({"matchLabels": {"a": "b"}})),
            ("matchConditions", json!([{"name": "a", "expression": "false"}])),
            (
                "clientConfig",
                json!({"service": {"namespace": "windlass-system", "name": "windlass"}}),
            ),
            ("rules", rule("apps", "*", "*")),
            ("rules", rule("", "pods", "DELETE")),
            ("rules", rule("", "pods/exec", "*")),
        ] {
            assert_eq!(found(std::slice::from_ref(&change)), None, "{change:?}");
        }
        let pods = found(&[("rules", rule("", "pods", "*"))]).unwrap();
        assert!(pods.contains("intercepts pods in"), "{pods}");
    }
}
