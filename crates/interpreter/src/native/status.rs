//! What of a status is worth collecting.

use serde_json::{Map, Value, json};
use windlass_object::object::annotation;

use super::{Answering, FieldTypeError, field};
use crate::{Answer, Question};

/// The generation of the template that an object was made of, which Karmada notes on it.
const TEMPLATE_GENERATION: &str = "resourcetemplate.karmada.io/generation";

/// What tells the status of a kind: all of it for most.
pub(super) fn of(api_version: &str, kind: &str) -> Answering {
    match (api_version, kind) {
        ("apps/v1", "Deployment") => |question| {
            let fields = [
                "replicas",
                "updatedReplicas",
                "readyReplicas",
                "availableReplicas",
                "unavailableReplicas",
                "observedGeneration",
            ];
            with_generations(question.object(), &fields)
        },
        ("apps/v1", "ReplicaSet") => |question| {
            let fields = [
                "replicas",
                "readyReplicas",
                "availableReplicas",
                "observedGeneration",
            ];
            with_generations(question.object(), &fields)
        },
        ("apps/v1", "StatefulSet") => |question| {
            let fields = [
                "availableReplicas",
                "currentReplicas",
                "readyReplicas",
                "replicas",
                "updatedReplicas",
            ];
            with_generations(question.object(), &fields)
        },
        ("apps/v1", "DaemonSet") => |question| {
            let fields = [
                "currentNumberScheduled",
                "desiredNumberScheduled",
                "numberAvailable",
                "numberMisscheduled",
                "numberReady",
                "numberUnavailable",
                "updatedNumberScheduled",
                "observedGeneration",
            ];
            with_generations(question.object(), &fields)
        },
        ("v1", "Service") => service,
        ("batch/v1", "Job") => |question| {
            let fields = [
                "active",
                "succeeded",
                "failed",
                "conditions",
                "startTime",
                "completionTime",
            ];
            Ok(answer(part(question.object(), &fields)))
        },
        ("policy/v1", "PodDisruptionBudget") => |question| {
            let fields = [
                "currentHealthy",
                "desiredHealthy",
                "expectedPods",
                "disruptionsAllowed",
                "disruptedPods",
            ];
            Ok(answer(part(question.object(), &fields)))
        },
        ("autoscaling/v2", "HorizontalPodAutoscaler") => |question| {
            Ok(answer(part(
                question.object(),
                &["currentReplicas", "desiredReplicas"],
            )))
        },
        _ => |question| Ok(Answer::Status(question.object().get("status").cloned())),
    }
}

fn service(question: Question<'_>) -> Result<Answer, FieldTypeError> {
    let object = question.object();
    match field::text(object, "/spec/type")? {
        Some("LoadBalancer") => Ok(answer(part(object, &["loadBalancer"]))),
        _ => Ok(Answer::Status(None)),
    }
}

fn with_generations(object: &Value, fields: &[&str]) -> Result<Answer, FieldTypeError> {
    if object.get("status").is_none() {
        return Ok(Answer::Status(None));
    }
    let mut status = part(object, fields);
    if let Some(generation) = field::integer(object, "/metadata/generation")? {
        status.insert("generation".to_owned(), json!(generation));
    }
    if let Some(generation) = annotation(object, TEMPLATE_GENERATION) {
        let generation: i64 = generation.parse().map_err(|_| FieldTypeError {
            field: format!("metadata.annotations.{TEMPLATE_GENERATION}"),
            expected: "an integer",
        })?;
        status.insert("resourceTemplateGeneration".to_owned(), json!(generation));
    }
    Ok(answer(status))
}

fn part(object: &Value, fields: &[&str]) -> Map<String, Value> {
    let found = fields.iter().filter_map(|name| {
        let value = object.pointer(&format!("/status/{name}"))?;
        Some(((*name).to_owned(), value.clone()))
    });
    found.collect()
}

fn answer(status: Map<String, Value>) -> Answer {
    Answer::Status((!status.is_empty()).then_some(Value::Object(status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(api_version: &str, kind: &str, object: &Value) -> Result<Value, String> {
        match of(api_version, kind)(Question::Status { object }) {
            Ok(Answer::Status(status)) => Ok(status.unwrap_or_default()),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn each_kind_has_fields_that_count() {
        let object = |status: Value| {
            json!({
                "metadata": {"generation": 3, "annotations": {TEMPLATE_GENERATION: "7"}}, "spec": {"type": "LoadBalancer"}, "status": status,
            })
        };
        for (api_version, kind, given, expected) in [
            (
                "apps/v1",
                "Deployment",
                json!({"replicas": 1, "readyReplicas": 1, "conditions": []}),
                json!({"replicas": 1, "readyReplicas": 1, "generation": 3, "resourceTemplateGeneration": 7}),
            ),
            (
                "apps/v1",
                "ReplicaSet",
                json!({"replicas": 1, "fullyLabeledReplicas": 1}),
                json!({"replicas": 1, "generation": 3, "resourceTemplateGeneration": 7}),
            ),
            (
                "apps/v1",
                "StatefulSet",
                json!({"replicas": 1, "observedGeneration": 3}),
                json!({"replicas": 1, "generation": 3, "resourceTemplateGeneration": 7}),
            ),
            (
                "apps/v1",
                "DaemonSet",
                json!({"numberReady": 1, "observedGeneration": 3}),
                json!({"numberReady": 1, "observedGeneration": 3, "generation": 3, "resourceTemplateGeneration": 7}),
            ),
            (
                "v1",
                "Service",
                json!({"loadBalancer": {"ingress": []}, "conditions": []}),
                json!({"loadBalancer": {"ingress": []}}),
            ),
            (
                "batch/v1",
                "Job",
                json!({"active": 1, "ready": 1}),
                json!({"active": 1}),
            ),
            (
                "policy/v1",
                "PodDisruptionBudget",
                json!({"currentHealthy": 1, "conditions": []}),
                json!({"currentHealthy": 1}),
            ),
            (
                "autoscaling/v2",
                "HorizontalPodAutoscaler",
                json!({"currentReplicas": 1, "conditions": []}),
                json!({"currentReplicas": 1}),
            ),
            (
                "v1",
                "Pod",
                json!({"phase": "Running", "podIP": "1.2.3.4"}),
                json!({"phase": "Running", "podIP": "1.2.3.4"}),
            ),
            ("example.com/v1", "Anything", json!({"a": 1}), json!({"a": 1})),
        ] {
            assert_eq!(status(api_version, kind, &object(given)), Ok(expected), "{kind}");
        }
        for (api_version, kind) in [
            ("apps/v1", "Deployment"),
            ("v1", "Service"),
            ("batch/v1", "Job"),
            ("example.com/v1", "Anything"),
        ] {
            assert_eq!(status(api_version, kind, &json!({})), Ok(Value::Null), "{kind}");
        }
    }

    #[test]
    fn a_generation_that_is_not_a_number_is_an_error() {
        let object = json!({"metadata": {"annotations": {TEMPLATE_GENERATION: "x"}}, "status": {}});
        assert_eq!(
            status("apps/v1", "Deployment", &object),
            Err("metadata.annotations.resourcetemplate.karmada.io/generation: must be an integer".to_owned())
        );
    }
}
