//! Parsing of responses, in Karmada's order.

use super::*;
use crate::{
    Answer, Operation, Question,
    answer::{Component, DependentObjectReference, ReplicaRequirements},
};

fn read(operation: Operation, body: &str) -> Result<Answer, String> {
    let (object, observed) = (deployment(), json!({}));
    let question = Question::new(operation, &object, &observed, 3, None);
    Answer::read_response(body.as_bytes(), "u1", question).map_err(|error| error.to_string())
}

fn answer_from(operation: Operation, fields: Value) -> Result<Answer, String> {
    read(operation, &response(fields).to_string())
}

#[test]
fn each_operation_has_its_answer() {
    let requirements = ReplicaRequirements {
        resource_request: [("cpu".to_owned(), "1500m".to_owned())].into(),
        ..ReplicaRequirements::default()
    };
    let written = json!({"resourceRequest": {"cpu": 1.5}});
    let reference = DependentObjectReference {
        api_version: "v1".into(),
        kind: "Secret".into(),
        namespace: Some("n".into()),
        name: Some("s".into()),
        label_selector: None,
    };
    let mut revised = deployment();
    revised["spec"]["replicas"] = 3.into();
    let patch = base64(r#"[{"op": "replace", "path": "/spec/replicas", "value": 3}]"#);
    let patch = json!({"patch": patch, "patchType": "JSONPatch"});
    for (operation, fields, expected) in [
        (
            Operation::InterpretReplica,
            json!({"replicas": 0}),
            Answer::Replica {
                replicas: 0,
                requirements: None,
            },
        ),
        (
            Operation::InterpretReplica,
            json!({"replicas": 2, "replicaRequirements": written}),
            Answer::Replica {
                replicas: 2,
                requirements: Some(requirements.clone()),
            },
        ),
        (
            Operation::InterpretComponent,
            json!({}),
            Answer::Component(vec![]),
        ),
        (
            Operation::InterpretComponent,
            json!({"components": [{"name": "a", "replicas": 1, "replicaRequirements": written}]}),
            Answer::Component(vec![Component {
                name: "a".into(),
                replicas: 1,
                replica_requirements: Some(requirements),
            }]),
        ),
        (Operation::ReviseReplica, json!({}), Answer::Object(deployment())),
        (
            Operation::ReviseReplica,
            patch.clone(),
            Answer::Object(revised.clone()),
        ),
        (Operation::Retain, patch.clone(), Answer::Object(revised.clone())),
        (Operation::AggregateStatus, patch, Answer::Object(revised)),
        (
            Operation::InterpretStatus,
            json!({"rawStatus": {}}),
            Answer::Status(Some(json!({}))),
        ),
        (
            Operation::InterpretHealth,
            json!({"healthy": false}),
            Answer::Health(false),
        ),
        (
            Operation::InterpretDependency,
            json!({}),
            Answer::Dependency(vec![]),
        ),
        (
            Operation::InterpretDependency,
            json!({"dependencies": null}),
            Answer::Dependency(vec![]),
        ),
        (
            Operation::InterpretDependency,
            json!({"dependencies": [{"apiVersion": "v1", "kind": "Secret", "namespace": "n", "name": "s"}]}),
            Answer::Dependency(vec![reference]),
        ),
    ] {
        assert_eq!(
            answer_from(operation, fields.clone()),
            Ok(expected),
            "{operation} {fields}"
        );
    }
}

#[test]
fn required_fields_must_be_present() {
    let patch = base64("[]");
    for (operation, fields, expected) in [
        (
            Operation::InterpretReplica,
            json!({}),
            "response.replicas: is missing",
        ),
        (
            Operation::InterpretReplica,
            json!({"replicas": null}),
            "response.replicas: is missing",
        ),
        (
            Operation::InterpretStatus,
            json!({"rawStatus": null}),
            "response.rawStatus: is missing",
        ),
        (
            Operation::InterpretHealth,
            json!({}),
            "response.healthy: is missing",
        ),
        (
            Operation::Retain,
            json!({"patchType": "JSONPatch"}),
            "response.patch: is missing",
        ),
        (
            Operation::Retain,
            json!({"patchType": "JSONPatch", "patch": ""}),
            "response.patch: is missing",
        ),
        (
            Operation::ReviseReplica,
            json!({"patch": patch}),
            "response.patchType: is missing",
        ),
        (
            Operation::AggregateStatus,
            json!({"patch": patch, "patchType": "MergePatch"}),
            "response.patchType: must be JSONPatch, not \"MergePatch\"",
        ),
        (
            Operation::InterpretDependency,
            json!({"dependencies": [{"kind": "A", "name": "a"}, {"apiVersion": "v1", "name": "a"}, {"apiVersion": "v1", "kind": "A"}]}),
            "response.dependencies[0].apiVersion: is missing; response.dependencies[1].kind: is missing; response.dependencies[2].name or labelSelector: is missing",
        ),
        (
            Operation::InterpretReplica,
            json!({"replicas": 1, "replicaRequirements": {"resourceRequest": {"cpu": "much"}}}),
            "response.replicaRequirements.resourceRequest.cpu: ",
        ),
    ] {
        let error = answer_from(operation, fields.clone()).unwrap_err();
        assert!(error.starts_with(expected), "{operation} {fields}: {error}");
        if !expected.ends_with(": ") {
            assert_eq!(error, expected);
        }
    }
}

#[test]
fn invalid_answers_are_rejected() {
    let failed =
        |status: Value| json!({"response": {"uid": "u1", "status": status, "healthy": true}}).to_string();
    for (body, expected) in [
        ("{}".to_owned(), "response: is missing"),
        (
            json!({"response": {"uid": "", "successful": true, "healthy": true}}).to_string(),
            "response.uid: must be \"u1\", as in the request, not \"\"",
        ),
        (
            // The uid is checked before the status.
            json!({"response": {"uid": "u2", "status": {"message": "a", "code": 1}}}).to_string(),
            "response.uid: must be \"u1\", as in the request, not \"u2\"",
        ),
        (failed(Value::Null), "response.status: is missing"),
        (
            failed(json!({"message": "no\ndatabase", "code": 500})),
            "the webhook failed with status 500: no database",
        ),
        ("<html>".to_owned(), "cannot decode the response: is not JSON: "),
        (
            json!({"response": {"uid": 1}}).to_string(),
            "cannot decode the response: response.uid: ",
        ),
        (
            json!({"response": {"uid": "u1", "successful": true, "replicas": 1_i64 << 31}}).to_string(),
            "cannot decode the response: response.replicas: ",
        ),
        (
            json!({"response": {"uid": "u1", "successful": true, "patch": "[]"}}).to_string(),
            "cannot decode the response: response.patch: ",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Status"}).to_string(),
            "the response is a \"Status\" of \"v1\", not a ResourceInterpreterContext of config.karmada.io/v1alpha1",
        ),
    ] {
        let error = read(Operation::InterpretHealth, &body).unwrap_err();
        assert!(error.starts_with(expected), "{body}: {error}");
    }
}

#[test]
fn a_response_is_decoded_as_in_go() {
    for body in [
        r#"{"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterContext",
            "response": {"uid": "u1", "successful": true, "healthy": true}}"#,
        r#"{"Response": {"UID": "u1", "Successful": true, "Healthy": true, "more": [1]}}"#,
    ] {
        assert_eq!(read(Operation::InterpretHealth, body), Ok(Answer::Health(true)));
    }
}

#[test]
fn a_long_message_is_shortened() {
    let long = "a".repeat(1 << 20);
    let body = json!({"response": {"uid": "u1", "status": {"message": long}}}).to_string();
    assert!(read(Operation::Retain, &body).unwrap_err().len() < 1000);
}

#[test]
fn answers_round_trip() {
    let (object, observed) = (deployment(), json!({}));
    let mut retained = deployment();
    retained["spec"]["paused"] = true.into();
    for (operation, answer) in [
        (
            Operation::InterpretReplica,
            Answer::Replica {
                replicas: 0,
                requirements: None,
            },
        ),
        (
            Operation::InterpretComponent,
            Answer::Component(vec![Component::default()]),
        ),
        (Operation::Retain, Answer::Object(retained.clone())),
        (Operation::ReviseReplica, Answer::Object(deployment())),
        (Operation::AggregateStatus, Answer::Object(retained)),
        (Operation::InterpretStatus, Answer::Status(Some(json!({"a": 1})))),
        (Operation::InterpretHealth, Answer::Health(true)),
        (Operation::InterpretDependency, Answer::Dependency(vec![])),
    ] {
        let question = Question::new(operation, &object, &observed, 1, None);
        let request = ResourceInterpreterRequest::from_question(question, "u1").unwrap();
        let response = ResourceInterpreterResponse::from_answer(&request, answer.clone()).unwrap();
        assert_eq!(response.status.as_ref().unwrap().code, 200);
        let body = json!(ResourceInterpreterContext::from_response(response)).to_string();
        assert_eq!(read(operation, &body), Ok(answer.clone()), "{operation}");
        let other = Operation::ALL
            .into_iter()
            .find(|other| *other != operation)
            .unwrap();
        let question = Question::new(other, &object, &observed, 1, None);
        let request = ResourceInterpreterRequest::from_question(question, "u1").unwrap();
        if !matches!((other, &answer), (Operation::ReviseReplica, Answer::Object(_))) {
            assert!(ResourceInterpreterResponse::from_answer(&request, answer).is_err());
        }
    }
}
