//! Whether Deployments have rolled out, and of which revision the pods behind a Service are.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::{
    cluster::{Cluster, RequestError, endpoints::Endpoint, kinds},
    domain::object,
};

/// Annotation of the Deployment controller on Deployments and their ReplicaSets.
const REVISION: &str = "deployment.kubernetes.io/revision";

/// Label on pods and ReplicaSets: which pod template they are of.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// How far a Deployment is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::controllers) enum Rollout {
    /// Every replica is of the newest revision and available, and there are no others.
    Complete,
    /// Not yet.
    Running(String),
    /// Kubernetes has given up waiting.
    Stuck(String),
}

// === impl Rollout ===

impl Rollout {
    /// Reads the status of a Deployment.
    pub(in crate::controllers) fn of(deployment: &Value) -> Self {
        let count = |pointer: &str| deployment.pointer(pointer).and_then(Value::as_i64);
        let name = object::text(deployment, "/metadata/name").unwrap_or_default();
        let wanted = count("/spec/replicas").unwrap_or(1);
        let [replicas, updated, available] = [
            "/status/replicas",
            "/status/updatedReplicas",
            "/status/availableReplicas",
        ]
        .map(|pointer| count(pointer).unwrap_or(0));
        let seen = count("/status/observedGeneration") >= count("/metadata/generation");
        if seen
            && [replicas, updated, available]
                .iter()
                .all(|count| *count == wanted)
        {
            return Self::Complete;
        }
        let state = format!(
            "Deployment {name}: {updated} of {wanted} replicas are of the new revision, {available} available, {} old",
            (replicas - updated).max(0)
        );
        let stuck = object::items(deployment, "/status/conditions")
            .iter()
            .find(|condition| {
                object::text(condition, "/type") == Some("Progressing")
                    && object::text(condition, "/status") == Some("False")
            });
        match stuck.filter(|_| seen) {
            Some(condition) => {
                let message = object::text(condition, "/message").unwrap_or_default();
                Self::Stuck(format!("{state}: {message}"))
            }
            None => Self::Running(state),
        }
    }
}

/// The uids of the pods that are of the newest revision of `deployments`, which live in `namespace`.
pub(super) async fn current_pods(
    cluster: &Cluster,
    namespace: &str,
    deployments: &[&Value],
) -> Result<HashSet<String>, RequestError> {
    let sets = cluster.list(&kinds::REPLICA_SET, Some(namespace), None).await?;
    let newest: HashMap<_, _> = sets
        .iter()
        .filter(|set| deployments.iter().any(|deployment| is_newest(set, deployment)))
        .filter_map(|set| {
            Some((
                object::text(set, "/metadata/uid")?,
                object::label(set, TEMPLATE_HASH)?,
            ))
        })
        .collect();
    let pods = cluster
        .list(&kinds::POD, Some(namespace), Some(TEMPLATE_HASH))
        .await?;
    let current = pods.iter().filter(|pod| {
        let hash = object::label(pod, TEMPLATE_HASH);
        owners(pod).any(|owner| newest.get(owner).is_some_and(|newest| Some(*newest) == hash))
    });
    Ok(current
        .filter_map(|pod| object::text(pod, "/metadata/uid").map(str::to_owned))
        .collect())
}

/// The addresses among `endpoints` that are not of `pods`.
pub(super) fn strangers(endpoints: &[Endpoint], pods: &HashSet<String>) -> Vec<String> {
    endpoints
        .iter()
        .filter(|endpoint| !endpoint.pod.as_ref().is_some_and(|pod| pods.contains(&pod.uid)))
        .map(|endpoint| endpoint.address.to_string())
        .collect()
}

fn is_newest(set: &Value, deployment: &Value) -> bool {
    let revision = object::annotation(deployment, REVISION);
    let Some(uid) = object::text(deployment, "/metadata/uid") else {
        return false;
    };
    revision.is_some()
        && object::annotation(set, REVISION) == revision
        && owners(set).any(|owner| owner == uid)
}

fn owners(object: &Value) -> impl Iterator<Item = &str> {
    object::items(object, "/metadata/ownerReferences")
        .iter()
        .filter_map(|owner| object::text(owner, "/uid"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(observed: i64, replicas: i64, updated: i64, available: i64) -> Value {
        json!({
            "metadata": {"name": "d", "generation": 2, "uid": "d", "annotations": {REVISION: "2"}},
            "spec": {"replicas": 2},
            "status": {
                "observedGeneration": observed, "replicas": replicas,
                "updatedReplicas": updated, "availableReplicas": available
            }
        })
    }

    #[test]
    fn a_rollout_is_complete_when_only_new_replicas_are_left_and_available() {
        assert_eq!(Rollout::of(&deployment(2, 2, 2, 2)), Rollout::Complete);
        for (observed, replicas, updated, available) in [
            (1, 2, 2, 2),
            (2, 3, 2, 2),
            (2, 2, 1, 2),
            (2, 2, 2, 1),
            (2, 0, 0, 0),
        ] {
            let deployment = deployment(observed, replicas, updated, available);
            assert!(
                matches!(Rollout::of(&deployment), Rollout::Running(_)),
                "{deployment}"
            );
        }
    }

    #[test]
    fn a_rollout_that_kubernetes_gave_up_on_says_why() {
        let mut deployment = deployment(2, 3, 1, 2);
        deployment["status"]["conditions"] =
            json!([{"type": "Progressing", "status": "False", "message": "has timed out progressing"}]);
        let Rollout::Stuck(message) = Rollout::of(&deployment) else {
            panic!("not stuck")
        };
        assert!(message.contains("timed out"), "{message}");
    }

    #[test]
    fn only_the_replica_set_of_the_deployments_revision_is_newest() {
        let deployment = deployment(2, 2, 2, 2);
        let set = |revision: &str, owner: &str| {
            json!({"metadata": {
                "annotations": {REVISION: revision}, "ownerReferences": [{"uid": owner}]
            }})
        };
        assert!(is_newest(&set("2", "d"), &deployment));
        assert!(!is_newest(&set("1", "d"), &deployment));
        assert!(!is_newest(&set("2", "other"), &deployment));
    }
}
