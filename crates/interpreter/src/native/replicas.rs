//! How many replicas an object has, and the object with others.

use serde_json::Value;

use super::{Answering, FieldTypeError, field};
use crate::{Answer, Question, pod};

/// What tells the replicas of a kind.
pub(super) fn of(api_version: &str, kind: &str) -> Option<Answering> {
    Some(match (api_version, kind) {
        ("apps/v1", "Deployment" | "ReplicaSet" | "StatefulSet") => |question| {
            let object = question.object();
            answer(
                object,
                field::integer(object, "/spec/replicas")?.unwrap_or(0),
                "/spec/template",
            )
        },
        ("batch/v1", "Job") => |question| {
            let object = question.object();
            let parallelism = field::integer(object, "/spec/parallelism")?;
            let completions = field::integer(object, "/spec/completions")?;
            let replicas = match (parallelism, completions) {
                (Some(parallelism), Some(completions)) => parallelism.min(completions),
                (parallelism, _) => parallelism.unwrap_or(0),
            };
            answer(object, replicas, "/spec/template")
        },
        ("v1", "Pod") => |question| answer(question.object(), 1, ""),
        _ => return None,
    })
}

/// What gives a kind other replicas; only where it has any, so that who decides on them stays the same.
pub(super) fn revising(api_version: &str, kind: &str) -> Option<Answering> {
    Some(match (api_version, kind) {
        ("apps/v1", "Deployment" | "ReplicaSet" | "StatefulSet") => {
            |question| revised(question, "/spec/replicas")
        }
        ("batch/v1", "Job") => |question| revised(question, "/spec/parallelism"),
        _ => return None,
    })
}

fn answer(object: &Value, replicas: i64, template: &str) -> Result<Answer, FieldTypeError> {
    let replicas = i32::try_from(replicas).map_err(|_| FieldTypeError {
        field: "spec.replicas".to_owned(),
        expected: "an integer of 32 bits",
    })?;
    let template = object.pointer(template).unwrap_or(&Value::Null);
    let requirements = pod::requirements(template).map_err(|error| FieldTypeError {
        field: format!("spec.template.{error}"),
        expected: "as a pod has it",
    })?;
    Ok(Answer::Replica {
        replicas,
        requirements,
    })
}

fn revised(question: Question<'_>, pointer: &str) -> Result<Answer, FieldTypeError> {
    let mut object = question.object().clone();
    let is_set = field::integer(&object, pointer)?.is_some();
    if let (Question::ReviseReplica { replicas, .. }, true) = (question, is_set)
        && let Some(place) = object.pointer_mut(pointer)
    {
        *place = replicas.into();
    }
    Ok(Answer::Object(object))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn replicas_are_where_a_kind_has_them() {
        let template = json!({"spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}});
        for (api_version, kind, spec, expected) in [
            (
                "apps/v1",
                "Deployment",
                json!({"replicas": 3, "template": template}),
                3,
            ),
            ("apps/v1", "ReplicaSet", json!({"template": template}), 0),
            (
                "apps/v1",
                "StatefulSet",
                json!({"replicas": 1, "template": template}),
                1,
            ),
            ("batch/v1", "Job", json!({"template": template}), 0),
            (
                "batch/v1",
                "Job",
                json!({"parallelism": 3, "template": template}),
                3,
            ),
            (
                "batch/v1",
                "Job",
                json!({"parallelism": 3, "completions": 2, "template": template}),
                2,
            ),
            ("v1", "Pod", template["spec"].clone(), 1),
        ] {
            let object = json!({ "spec": spec });
            let answered = of(api_version, kind).unwrap()(Question::Replica { object: &object });
            let Ok(Answer::Replica {
                replicas,
                requirements: Some(needed),
            }) = answered
            else {
                panic!("{kind}: {answered:?}")
            };
            assert_eq!(
                (replicas, &*needed.resource_request["cpu"]),
                (expected, "1"),
                "{kind}"
            );
        }
    }

    #[test]
    fn replicas_are_revised_where_there_are_any() {
        for (api_version, kind, spec, expected) in [
            (
                "apps/v1",
                "Deployment",
                json!({"replicas": 3}),
                json!({"replicas": 5}),
            ),
            ("apps/v1", "Deployment", json!({}), json!({})),
            (
                "batch/v1",
                "Job",
                json!({"parallelism": 3, "completions": 4}),
                json!({"parallelism": 5, "completions": 4}),
            ),
        ] {
            let object = json!({ "spec": spec });
            let question = Question::ReviseReplica {
                object: &object,
                replicas: 5,
            };
            assert_eq!(
                revising(api_version, kind).unwrap()(question),
                Ok(Answer::Object(json!({ "spec": expected })))
            );
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let object = json!({"spec": {"replicas": 3_000_000_000_i64}});
        let failed = of("apps/v1", "Deployment").unwrap()(Question::Replica { object: &object });
        assert_eq!(
            failed.unwrap_err().to_string(),
            "spec.replicas: must be an integer of 32 bits"
        );
    }
}
