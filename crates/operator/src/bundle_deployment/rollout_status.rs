//! Whether Deployments have rolled out.

use serde_json::Value;
use windlass_object::{object, text::tidied};

use crate::install::traffic::frozen_for;

/// How far a Deployment is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RolloutStatus {
    /// Every replica is of the newest revision and available, and there are no others.
    Complete,
    /// Not yet; what is waited for.
    Running(String),
    /// Kubernetes has given up waiting; for what.
    Stuck(String),
}

impl RolloutStatus {
    /// Reads the status of a Deployment.
    pub fn of(deployment: &Value) -> Self {
        let count = |pointer: &str| deployment.pointer(pointer).and_then(Value::as_i64);
        let name = object::text(deployment, "/metadata/name").unwrap_or_default();
        let desired = count("/spec/replicas").unwrap_or(1);
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
                .all(|count| *count == desired)
        {
            return Self::Complete;
        }
        let mut state = format!(
            "Deployment {name}: {updated} of {desired} replicas updated, {available} available, {} old",
            (replicas - updated).max(0)
        );
        for obstacle in replica_failure(deployment).into_iter().chain(pause(deployment)) {
            state = format!("{state}; {obstacle}");
        }
        let stuck = object::condition(deployment, "Progressing")
            .filter(|condition| seen && object::text(condition, "/status") == Some("False"));
        match stuck {
            Some(condition) => {
                let message = object::text(condition, "/message").unwrap_or_default();
                Self::Stuck(format!("{state}: {message}"))
            }
            None => Self::Running(state),
        }
    }
}

/// Why a ReplicaSet of the Deployment cannot create pods, for example a quota, or what admission has against them. The
/// Deployment controller copies it from the ReplicaSet.
pub(super) fn replica_failure(deployment: &Value) -> Option<String> {
    let failure = object::condition(deployment, "ReplicaFailure")?;
    let is_failing = object::text(failure, "/status") == Some("True");
    let message = object::text(failure, "/message").unwrap_or_default();
    is_failing.then(|| format!("pods cannot be created: {}", tidied(message)))
}

/// What to do about a Deployment that somebody has paused; one that is frozen is paused by us.
pub(super) fn pause(deployment: &Value) -> Option<String> {
    if frozen_for(deployment).is_some() {
        return None;
    }
    let name = object::text(deployment, "/metadata/name").unwrap_or_default();
    let namespace = object::text(deployment, "/metadata/namespace").unwrap_or_default();
    (deployment.pointer("/spec/paused") == Some(&Value::Bool(true)))
        .then(|| format!("it is paused: run kubectl rollout resume deployment/{name} -n {namespace}"))
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    pub(in crate::bundle_deployment) fn deployment(
        observed: i64,
        replicas: i64,
        updated: i64,
        available: i64,
    ) -> Value {
        json!({
            "metadata": {"name": "d", "generation": 2, "uid": "d", "annotations": {"deployment.kubernetes.io/revision": "2"}},
            "spec": {"replicas": 2},
            "status": {
                "observedGeneration": observed, "replicas": replicas,
                "updatedReplicas": updated, "availableReplicas": available
            }
        })
    }

    #[test]
    fn a_rollout_is_complete_when_only_new_replicas_are_left_and_available() {
        assert_eq!(
            RolloutStatus::of(&deployment(2, 2, 2, 2)),
            RolloutStatus::Complete
        );
        for (observed, replicas, updated, available) in [
            (1, 2, 2, 2),
            (2, 3, 2, 2),
            (2, 2, 1, 2),
            (2, 2, 2, 1),
            (2, 0, 0, 0),
        ] {
            let deployment = deployment(observed, replicas, updated, available);
            assert!(
                matches!(RolloutStatus::of(&deployment), RolloutStatus::Running(_)),
                "{deployment}"
            );
        }
    }

    #[test]
    fn a_rollout_that_kubernetes_gave_up_on_says_why() {
        let mut deployment = deployment(2, 3, 1, 2);
        deployment["status"]["conditions"] =
            json!([{"type": "Progressing", "status": "False", "message": "has timed out progressing"}]);
        let RolloutStatus::Stuck(message) = RolloutStatus::of(&deployment) else {
            panic!("not stuck")
        };
        assert!(message.contains("timed out"), "{message}");
    }

    #[test]
    fn what_keeps_pods_from_being_created_is_said() {
        let quota = r#"pods "d-1" is forbidden: exceeded quota: pods"#;
        for (status, is_said) in [("True", true), ("False", false)] {
            let mut deployment = deployment(2, 3, 1, 2);
            let failure = json!({"type": "ReplicaFailure", "status": status, "message": quota});
            deployment["status"]["conditions"] = json!([failure]);
            let RolloutStatus::Running(message) = RolloutStatus::of(&deployment) else {
                panic!("not running")
            };
            assert_eq!(message.contains("exceeded quota"), is_said, "{message}");
            let timeout = json!({"type": "Progressing", "status": "False", "message": "timed out"});
            deployment["status"]["conditions"] = json!([timeout, failure]);
            let RolloutStatus::Stuck(message) = RolloutStatus::of(&deployment) else {
                panic!("not stuck")
            };
            assert_eq!(message.contains("exceeded quota"), is_said, "{message}");
            assert!(message.contains("timed out"), "{message}");
        }
    }
}
