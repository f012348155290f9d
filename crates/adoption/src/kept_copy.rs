//! Copies of Deployments that keep serving the old callers during an adoption; the old Services select their
//! pods.

use serde_json::{Map, Value, json};
use windlass_object::{json::fields, names, object};

/// The maximum length of the name in a copy's name: names of its pods have a suffix, and at most 63
/// characters.
const LONGEST: usize = 40;

/// Returns the copy of a live Deployment that runs next to it for the BundleDeployment that adopts it.
pub fn kept_copy(deployment: &Value, bundle_deployment: &str) -> Value {
    let name: String = object::text(deployment, "/metadata/name")
        .unwrap_or_default()
        .chars()
        .take(LONGEST)
        .collect();
    let mut spec = deployment.get("spec").cloned().unwrap_or_default();
    for path in [
        &["selector", "matchLabels"][..],
        &["template", "metadata", "labels"],
    ] {
        fields(&mut spec, path).insert(names::KEPT_FOR.into(), bundle_deployment.into());
    }
    fields(&mut spec, &["template", "metadata"]).shift_remove("creationTimestamp");
    let top = fields(&mut spec, &[]);
    top.shift_remove("paused");
    if top.get("replicas").and_then(Value::as_i64) == Some(0) {
        top.insert("replicas".into(), 1.into());
    }
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "namespace": deployment["metadata"]["namespace"],
            "name": format!("{name}-kept"),
            "labels": {names::KEPT_FOR: bundle_deployment},
        },
        "spec": spec,
    })
}

/// Reports whether a Service selects the pods of a Deployment.
pub fn selects_pods_of(service: &Value, deployment: &Value) -> bool {
    let place = |object: &Value| object::text(object, "/metadata/namespace").map(str::to_owned);
    let selector = service.pointer("/spec/selector").and_then(Value::as_object);
    let labels = deployment.pointer("/spec/template/metadata/labels");
    let selects = |selector: &Map<String, Value>| {
        let has =
            |(name, value): (&String, &Value)| labels.is_some_and(|labels| labels.get(name) == Some(value));
        !selector.is_empty() && selector.iter().all(has)
    };
    place(service) == place(deployment) && selector.is_some_and(selects)
}

/// Returns the selector of a Service, restricted to pods with this label.
pub fn narrowed_selector(service: &Value, label: &str, value: &str) -> Value {
    let mut selector = service.pointer("/spec/selector").cloned().unwrap_or_default();
    fields(&mut selector, &[]).insert(label.to_owned(), value.into());
    selector
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(name: &str) -> Value {
        json!({
            "metadata": {"namespace": "n", "name": name, "uid": "1", "annotations": {"a": "b"}},
            "spec": {"replicas": 0, "paused": true, "selector": {"matchLabels": {"app": "a"}},
                "template": {"metadata": {"labels": {"app": "a", "tier": "b"}, "creationTimestamp": null}}},
            "status": {"replicas": 2},
        })
    }

    #[test]
    fn the_old_services_select_the_pods_of_a_copy() {
        let (deployment, service) = (
            deployment("d"),
            json!({"metadata": {"namespace": "n", "name": "s"}, "spec": {"selector": {"app": "a"}}}),
        );
        let copy = kept_copy(&deployment, "b");
        assert_eq!(copy["metadata"]["name"], "d-kept");
        assert_eq!(copy["spec"]["replicas"], 1);
        assert_eq!(
            copy["spec"]["selector"]["matchLabels"],
            json!({"app": "a", "windlass.dev/kept-for": "b"})
        );
        assert!(copy.get("status").is_none() && copy["spec"].get("paused").is_none());
        assert!(selects_pods_of(&service, &deployment) && selects_pods_of(&service, &copy));
        let mut narrowed = service.clone();
        narrowed["spec"]["selector"] = narrowed_selector(&service, names::KEPT_FOR, "b");
        assert!(!selects_pods_of(&narrowed, &deployment) && selects_pods_of(&narrowed, &copy));
        let long = kept_copy(&self::deployment(&"d".repeat(63)), "b");
        assert_eq!(long["metadata"]["name"].as_str().map(str::len), Some(45));
    }

    #[test]
    fn a_service_without_a_matching_selector_selects_no_pods() {
        for service in [
            json!({"metadata": {"namespace": "n"}, "spec": {}}),
            json!({"metadata": {"namespace": "n"}, "spec": {"selector": {}}}),
            json!({"metadata": {"namespace": "m"}, "spec": {"selector": {"app": "a"}}}),
            json!({"metadata": {"namespace": "n"}, "spec": {"selector": {"app": "b"}}}),
        ] {
            assert!(!selects_pods_of(&service, &deployment("d")), "{service}");
        }
    }
}
