//! Whether an object does what it is for.

use serde_json::Value;
use windlass_object::object::{condition, items, text as text_of};

use super::{Answering, FieldTypeError, field};
use crate::{Answer, Question};

/// What tells the health of a kind.
pub(super) fn of(api_version: &str, kind: &str) -> Option<Answering> {
    Some(match (api_version, kind) {
        ("apps/v1", "Deployment" | "StatefulSet") => |question| answer(question, rollout),
        ("apps/v1", "ReplicaSet") => |question| answer(question, replica_set),
        ("apps/v1", "DaemonSet") => |question| answer(question, daemon_set),
        ("v1", "Service") => |question| answer(question, service),
        ("v1", "PersistentVolumeClaim") => |question| answer(question, claim),
        ("v1", "Pod") => |question| answer(question, pod),
        ("v1", "Namespace") => |question| answer(question, namespace),
        ("networking.k8s.io/v1", "Ingress") => |question| answer(question, has_address),
        ("policy/v1", "PodDisruptionBudget") => |question| answer(question, disruption_budget),
        ("batch/v1", "Job") => |question| answer(question, job),
        ("batch/v1", "CronJob") => |question| answer(question, |_| Ok(true)),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition") => |question| answer(question, definition),
        ("apiregistration.k8s.io/v1", "APIService") => {
            |question| answer(question, |object| Ok(by_condition(object, "Available")))
        }
        _ => return None,
    })
}

/// Whether a condition is `True`, of this generation where it or the status says of which it is.
pub(super) fn by_condition(object: &Value, condition_type: &str) -> bool {
    let Some(found) = condition(object, condition_type) else {
        return false;
    };
    let observed = found
        .get("observedGeneration")
        .or_else(|| object.pointer("/status/observedGeneration"))
        .and_then(Value::as_i64);
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64);
    let is_current = observed.is_none() || generation.is_none() || observed == generation;
    is_current && text_of(found, "/status") == Some("True")
}

fn answer(
    question: Question<'_>,
    is_healthy: fn(&Value) -> Result<bool, FieldTypeError>,
) -> Result<Answer, FieldTypeError> {
    is_healthy(question.object()).map(Answer::Health)
}

fn count(object: &Value, name: &str) -> Result<i64, FieldTypeError> {
    Ok(field::integer(object, &format!("/status/{name}"))?.unwrap_or(0))
}

fn is_observed(object: &Value) -> Result<bool, FieldTypeError> {
    let generation = field::integer(object, "/metadata/generation")?.unwrap_or(0);
    Ok(count(object, "observedGeneration")? == generation)
}

fn rollout(object: &Value) -> Result<bool, FieldTypeError> {
    let updated = count(object, "updatedReplicas")?;
    let is_updated = field::integer(object, "/spec/replicas")?.is_none_or(|replicas| updated >= replicas);
    Ok(is_observed(object)? && is_updated && count(object, "availableReplicas")? >= updated)
}

fn replica_set(object: &Value) -> Result<bool, FieldTypeError> {
    let available = count(object, "availableReplicas")?;
    let is_available = field::integer(object, "/spec/replicas")?.is_none_or(|replicas| available >= replicas);
    Ok(is_observed(object)? && is_available)
}

fn daemon_set(object: &Value) -> Result<bool, FieldTypeError> {
    let updated = count(object, "updatedNumberScheduled")?;
    let is_updated = updated >= count(object, "desiredNumberScheduled")?;
    Ok(is_observed(object)? && is_updated && count(object, "numberAvailable")? >= updated)
}

fn service(object: &Value) -> Result<bool, FieldTypeError> {
    match field::text(object, "/spec/type")? {
        Some("LoadBalancer") => has_address(object),
        _ => Ok(true),
    }
}

fn has_address(object: &Value) -> Result<bool, FieldTypeError> {
    let ingress = field::list(object, "/status/loadBalancer/ingress")?;
    let is_address = |ingress: &Value| {
        let address = text_of(ingress, "/hostname").or_else(|| text_of(ingress, "/ip"));
        address.is_some_and(|address| !address.is_empty())
    };
    Ok(ingress.iter().any(is_address))
}

fn claim(object: &Value) -> Result<bool, FieldTypeError> {
    Ok(field::text(object, "/status/phase")? == Some("Bound"))
}

fn pod(object: &Value) -> Result<bool, FieldTypeError> {
    let is_ready = || {
        let ready = items(object, "/status/conditions")
            .iter()
            .find(|condition| text_of(condition, "/type") == Some("Ready"));
        ready.is_some_and(|ready| text_of(ready, "/status") == Some("True"))
    };
    Ok(match field::text(object, "/status/phase")? {
        Some("Succeeded") => true,
        Some("Running") => is_ready(),
        _ => false,
    })
}

fn namespace(object: &Value) -> Result<bool, FieldTypeError> {
    Ok(field::text(object, "/status/phase")? == Some("Active"))
}

fn disruption_budget(object: &Value) -> Result<bool, FieldTypeError> {
    Ok(count(object, "currentHealthy")? >= count(object, "desiredHealthy")?)
}

/// One that runs is as it should be, and so is one that is done; one that has failed, or is about to, is not.
fn job(object: &Value) -> Result<bool, FieldTypeError> {
    let holds = |name| condition(object, name).and_then(|found| text_of(found, "/status")) == Some("True");
    Ok(!holds("Failed") && !holds("FailureTarget"))
}

fn definition(object: &Value) -> Result<bool, FieldTypeError> {
    Ok(by_condition(object, "Established") && by_condition(object, "NamesAccepted"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn health(api_version: &str, kind: &str, rest: &Value) -> Option<Result<bool, String>> {
        let mut object = rest.clone();
        object["apiVersion"] = api_version.into();
        object["kind"] = kind.into();
        let answering = of(api_version, kind)?;
        Some(match answering(Question::Health { object: &object }) {
            Ok(answer) => Ok(answer == Answer::Health(true)),
            Err(error) => Err(error.to_string()),
        })
    }

    #[test]
    fn each_kind_is_healthy_as_its_status_says() {
        let rollout = |observed, replicas: Value, updated, available| {
            json!({"metadata": {"generation": 2}, "spec": {"replicas": replicas},
                "status": {"observedGeneration": observed, "updatedReplicas": updated, "availableReplicas": available}})
        };
        let conditions = |list: &[(&str, &str)]| {
            let list: Vec<_> = list
                .iter()
                .map(|(name, status)| json!({"type": name, "status": status}))
                .collect();
            json!({"status": {"conditions": list}})
        };
        let ingress = |entry: Value| json!({"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [entry]}}});
        for (api_version, kind, object, expected) in [
            ("apps/v1", "Deployment", rollout(2, json!(3), 3, 3), true),
            ("apps/v1", "Deployment", rollout(1, json!(3), 3, 3), false),
            ("apps/v1", "Deployment", rollout(2, json!(3), 2, 2), false),
            ("apps/v1", "Deployment", rollout(2, json!(3), 3, 2), false),
            ("apps/v1", "Deployment", rollout(2, json!(null), 0, 0), true),
            ("apps/v1", "Deployment", rollout(2, json!(0), 0, 0), true),
            ("apps/v1", "StatefulSet", rollout(2, json!(1), 1, 1), true),
            ("apps/v1", "StatefulSet", rollout(2, json!(1), 1, 0), false),
            ("apps/v1", "ReplicaSet", rollout(2, json!(1), 0, 1), true),
            ("apps/v1", "ReplicaSet", rollout(2, json!(2), 0, 1), false),
            (
                "apps/v1",
                "DaemonSet",
                json!({"status": {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 2}}),
                true,
            ),
            (
                "apps/v1",
                "DaemonSet",
                json!({"status": {"desiredNumberScheduled": 2, "updatedNumberScheduled": 1, "numberAvailable": 2}}),
                false,
            ),
            (
                "apps/v1",
                "DaemonSet",
                json!({"status": {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 1}}),
                false,
            ),
            ("v1", "Service", json!({"spec": {}}), true),
            ("v1", "Service", json!({"spec": {"type": "LoadBalancer"}}), false),
            ("v1", "Service", ingress(json!({"ip": "1.2.3.4"})), true),
            ("v1", "Service", ingress(json!({"hostname": ""})), false),
            (
                "networking.k8s.io/v1",
                "Ingress",
                ingress(json!({"hostname": "h"})),
                true,
            ),
            ("networking.k8s.io/v1", "Ingress", json!({}), false),
            (
                "v1",
                "PersistentVolumeClaim",
                json!({"status": {"phase": "Bound"}}),
                true,
            ),
            (
                "v1",
                "PersistentVolumeClaim",
                json!({"status": {"phase": "Pending"}}),
                false,
            ),
            ("v1", "Pod", json!({"status": {"phase": "Succeeded"}}), true),
            (
                "v1",
                "Pod",
                json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}),
                true,
            ),
            (
                "v1",
                "Pod",
                json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}}),
                false,
            ),
            (
                "v1",
                "Pod",
                json!({"status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "True"}]}}),
                false,
            ),
            ("v1", "Pod", json!({}), false),
            ("v1", "Namespace", json!({"status": {"phase": "Active"}}), true),
            (
                "v1",
                "Namespace",
                json!({"status": {"phase": "Terminating"}}),
                false,
            ),
            (
                "policy/v1",
                "PodDisruptionBudget",
                json!({"status": {"currentHealthy": 1, "desiredHealthy": 1}}),
                true,
            ),
            (
                "policy/v1",
                "PodDisruptionBudget",
                json!({"status": {"currentHealthy": 0, "desiredHealthy": 1}}),
                false,
            ),
            ("policy/v1", "PodDisruptionBudget", json!({}), true),
            ("batch/v1", "Job", json!({}), true),
            ("batch/v1", "Job", conditions(&[("Complete", "True")]), true),
            ("batch/v1", "Job", conditions(&[("Failed", "True")]), false),
            ("batch/v1", "Job", conditions(&[("FailureTarget", "True")]), false),
            ("batch/v1", "CronJob", json!({}), true),
            (
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                conditions(&[("Established", "True"), ("NamesAccepted", "True")]),
                true,
            ),
            (
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                conditions(&[("Established", "True"), ("NamesAccepted", "False")]),
                false,
            ),
            (
                "apiregistration.k8s.io/v1",
                "APIService",
                conditions(&[("Available", "True")]),
                true,
            ),
            (
                "apiregistration.k8s.io/v1",
                "APIService",
                conditions(&[("Available", "Unknown")]),
                false,
            ),
        ] {
            assert_eq!(
                health(api_version, kind, &object),
                Some(Ok(expected)),
                "{kind} {object}"
            );
        }
    }

    #[test]
    fn other_versions_have_no_health_and_other_types_are_errors() {
        assert_eq!(health("apps/v1beta1", "Deployment", &json!({})), None);
        assert_eq!(health("v1", "ConfigMap", &json!({})), None);
        assert_eq!(
            health("apps/v1", "Deployment", &json!({"spec": {"replicas": "3"}})),
            Some(Err("spec.replicas: must be an integer".to_owned()))
        );
        assert_eq!(
            health("v1", "Pod", &json!({"status": {"phase": 1}})),
            Some(Err("status.phase: must be a string".to_owned()))
        );
    }

    #[test]
    fn a_condition_is_of_the_generation_that_it_says() {
        let object = |of_condition: Value, of_status: Value| {
            json!({"metadata": {"generation": 2}, "status": {"observedGeneration": of_status,
                "conditions": [{"type": "Ready", "status": "True", "observedGeneration": of_condition}]}})
        };
        for (of_condition, of_status, expected) in [
            (json!(2), json!(1), true),
            (json!(1), json!(2), false),
            (json!(null), json!(null), true),
        ] {
            assert_eq!(by_condition(&object(of_condition, of_status), "Ready"), expected);
        }
        let plain = json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]}});
        assert!(!by_condition(&plain, "Ready"));
    }
}
