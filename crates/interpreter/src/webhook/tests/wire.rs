//! The fields of requests.

use super::*;
use crate::{Operation, Question, question::AggregatedStatusItem};

fn request_json(question: Question<'_>) -> Value {
    let request = ResourceInterpreterRequest::from_question(question, "u1").unwrap();
    json!(ResourceInterpreterContext::from_request(request))
}

#[test]
fn a_request_has_the_fields_of_karmada() {
    let (object, observed) = (deployment(), json!({"observed": true}));
    let items = [AggregatedStatusItem {
        cluster_name: "m1".into(),
        status: Some(json!({"replicas": 1})),
        applied: true,
        ..AggregatedStatusItem::default()
    }];
    for operation in Operation::ALL {
        let question = Question::new(operation, &object, &observed, 3, Some(&items));
        let mut expected = json!({
            "uid": "u1",
            "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "name": "d",
            "namespace": "n",
            "operation": operation.name(),
            "object": object,
        });
        match operation {
            Operation::Retain => expected["observedObject"] = observed.clone(),
            // For other operations Karmada sends 0.
            Operation::ReviseReplica => expected["replicas"] = 3.into(),
            Operation::AggregateStatus => {
                expected["aggregatedStatus"] =
                    json!([{"clusterName": "m1", "status": {"replicas": 1}, "applied": true}]);
            }
            _ => {}
        }
        let expected = json!({
            "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterContext",
            "request": expected,
        });
        assert_eq!(request_json(question), expected, "{operation}");
    }
}

#[test]
fn the_core_group_is_empty_and_no_namespace_is_absent() {
    let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}});
    let request = &request_json(Question::Health { object: &object })["request"];
    assert_eq!(
        request["kind"],
        json!({"group": "", "version": "v1", "kind": "Node"})
    );
    assert_eq!(request.get("namespace"), None);
    let items = Some(&[][..]);
    let request = &request_json(Question::AggregateStatus {
        object: &object,
        items,
    })["request"];
    assert_eq!(request.get("aggregatedStatus"), None);
}

#[test]
fn requests_round_trip() {
    let (object, observed) = (deployment(), json!({"observed": true}));
    let items = [AggregatedStatusItem::default()];
    for operation in Operation::ALL {
        let question = Question::new(operation, &object, &observed, 3, Some(&items));
        let context: ResourceInterpreterContext<'_> = serde_json::from_value(request_json(question)).unwrap();
        assert_eq!(context.request.unwrap().question(), question);
    }
}

#[test]
fn older_requests_of_karmada_are_accepted() {
    let sent =
        br#"{"request": {"uid": "u", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "name": "p",
        "operation": "InterpretHealthy", "object": {"kind": "Pod"}, "replicas": 0, "unknown": 1}}"#;
    let context: ResourceInterpreterContext<'_> = webhook_transport::go_json::read(sent).unwrap();
    let request = context.request.unwrap();
    assert_eq!(
        request.question(),
        Question::Health {
            object: &json!({"kind": "Pod"})
        }
    );
}

#[test]
fn invalid_questions_are_reported() {
    let object = deployment();
    fn error(question: Question<'_>) -> String {
        ResourceInterpreterRequest::from_question(question, "u")
            .unwrap_err()
            .to_string()
    }
    let replicas = 1 << 31;
    let question = Question::ReviseReplica {
        object: &object,
        replicas,
    };
    assert_eq!(error(question), "2147483648 replicas do not fit into 32 bits");
    for (object, expected) in [
        (json!({"kind": "Pod"}), "the object has no apiVersion"),
        (json!({"apiVersion": "v1", "kind": ""}), "the object has no kind"),
    ] {
        assert_eq!(error(Question::Health { object: &object }), expected);
    }
}
