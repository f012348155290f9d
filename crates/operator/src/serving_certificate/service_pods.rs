//! The pods that Services select, including those that are not endpoints yet.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use windlass_cluster::{Cluster, RequestError, kinds};
use windlass_object::{InCluster, ObjectKey, object};

/// A pod that serves now or may serve later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServicePod {
    pub(super) name: String,
    pub(super) created: Option<Timestamp>,
    /// The controller of the pod, if it has one.
    pub(super) controller: Option<ObjectKey>,
}

/// Lists the pods that Services of a namespace select, without duplicates. Reads from the API server instead
/// of a watch, which may be too far behind to decide about removing a CA.
pub(super) async fn list(
    cluster: &Cluster,
    namespace: &str,
    services: &[Arc<Value>],
) -> Result<Vec<ServicePod>, RequestError> {
    let mut pods: Vec<ServicePod> = Vec::new();
    for selector in services.iter().filter_map(|service| selector(service)) {
        let listed = cluster
            .list_as(&kinds::POD, Some(namespace), Some(&selector), |pod| {
                ServicePod::from_object(&pod)
            })
            .await?;
        pods.extend(listed);
    }
    pods.sort_by(|one, other| one.name.cmp(&other.name));
    pods.dedup_by(|one, other| one.name == other.name);
    Ok(pods)
}

/// Returns the label selector of a Service, or `None` if it has none.
fn selector(service: &Value) -> Option<String> {
    let labels = service.pointer("/spec/selector")?.as_object()?;
    let terms: Vec<_> = labels
        .iter()
        .filter_map(|(label, value)| Some(format!("{label}={}", value.as_str()?)))
        .collect();
    (!terms.is_empty()).then(|| terms.join(","))
}

impl ServicePod {
    /// Reads a pod. Returns `None` if it has ended or is being deleted.
    fn from_object(pod: &Value) -> Option<Self> {
        let has_ended = matches!(object::text(pod, "/status/phase"), Some("Succeeded" | "Failed"));
        if has_ended || object::is_terminating(pod) {
            return None;
        }
        let created = object::text(pod, "/metadata/creationTimestamp");
        Some(Self {
            name: object::text(pod, "/metadata/name")?.to_owned(),
            created: created.and_then(|created| created.parse().ok()),
            controller: controller(pod),
        })
    }
}

/// Returns the controlling owner of an object, in the object's namespace.
pub(super) fn controller(object: &Value) -> Option<ObjectKey> {
    let owners = object::items(object, "/metadata/ownerReferences");
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    let text = |field: &str| object::text(owner, field).map(str::to_owned);
    Some(ObjectKey {
        cluster: InCluster::Local,
        api_version: text("/apiVersion")?,
        kind: text("/kind")?,
        namespace: object::text(object, "/metadata/namespace").map(str::to_owned),
        name: text("/name")?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ended_and_deleted_pods_are_ignored() {
        let pod = |phase: &str, deleted: Option<&str>| {
            json!({"metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": deleted},
                "status": {"phase": phase}})
        };
        for (pod, counts) in [
            (pod("Pending", None), true),
            (pod("Running", None), true),
            (pod("Failed", None), false),
            (pod("Succeeded", None), false),
            (pod("Running", Some("2026-01-01T00:00:00Z")), false),
        ] {
            assert_eq!(ServicePod::from_object(&pod).is_some(), counts, "{pod}");
        }
    }

    #[test]
    fn a_service_without_a_selector_selects_no_pod() {
        assert_eq!(selector(&json!({"spec": {}})), None);
        assert_eq!(selector(&json!({"spec": {"selector": {}}})), None);
        let both = json!({"spec": {"selector": {"app": "a", "tier": "b"}}});
        assert_eq!(selector(&both).as_deref(), Some("app=a,tier=b"));
    }
}
