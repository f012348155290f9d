use serde_json::{Value, json};

use super::{of_kind, resource_interpreter};
use crate::{NativeInterpreter, Operation, native::replicas::ReplicaRule};

const WITH_REPLICAS: [(&str, &str); 3] = [
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
];

#[tokio::test]
async fn replicas_are_counted_by_kind() {
    let template = json!({"spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]}});
    let requirements = json!({"resourceRequest": {"cpu": "1"}});
    let mut cases = Vec::new();
    for (api_version, kind) in WITH_REPLICAS {
        cases.push((
            api_version,
            kind,
            json!({"spec": {"replicas": 3, "template": template}}),
            3,
            requirements.clone(),
        ));
        cases.push((
            api_version,
            kind,
            json!({"spec": {"template": template}}),
            0,
            requirements.clone(),
        ));
        cases.push((api_version, kind, json!({}), 0, json!(null)));
    }
    for (spec, replicas) in [
        (json!({"parallelism": 3, "completions": 2}), 2),
        (json!({"parallelism": 3, "completions": 5}), 3),
        (json!({"parallelism": 3}), 3),
        (json!({"completions": 5}), 0),
    ] {
        cases.push(("batch/v1", "Job", json!({"spec": spec}), replicas, json!(null)));
    }
    cases.push((
        "batch/v1",
        "Job",
        json!({"spec": {"parallelism": 1, "template": template}}),
        1,
        requirements.clone(),
    ));
    cases.push(("v1", "Pod", template.clone(), 1, requirements));
    for (api_version, kind, object, replicas, requirements) in cases {
        let object = of_kind(api_version, kind, &object);
        let counted = resource_interpreter(NativeInterpreter::new(jiff::Timestamp::now))
            .replicas(&object)
            .await
            .unwrap();
        let (counted, needed) = counted.unwrap();
        assert_eq!((counted, json!(needed)), (replicas, requirements), "{object}");
    }
}

#[tokio::test]
async fn only_existing_replicas_are_revised() {
    let mut cases = vec![
        (
            "batch/v1",
            "Job",
            json!({"spec": {"parallelism": 1, "completions": 9}}),
            json!({"spec": {"parallelism": 7, "completions": 9}}),
        ),
        (
            "batch/v1",
            "Job",
            json!({"spec": {"completions": 9}}),
            json!({"spec": {"completions": 9}}),
        ),
        (
            "v1",
            "Pod",
            json!({"spec": {"replicas": 1}}),
            json!({"spec": {"replicas": 1}}),
        ),
        (
            "apps/v1",
            "DaemonSet",
            json!({"spec": {"replicas": 1}}),
            json!({"spec": {"replicas": 1}}),
        ),
    ];
    for (api_version, kind) in WITH_REPLICAS {
        cases.push((
            api_version,
            kind,
            json!({"spec": {"replicas": 1}}),
            json!({"spec": {"replicas": 7}}),
        ));
        cases.push((api_version, kind, json!({"spec": {}}), json!({"spec": {}})));
    }
    for (api_version, kind, object, expected) in cases {
        let object = of_kind(api_version, kind, &object);
        let revised = resource_interpreter(NativeInterpreter::new(jiff::Timestamp::now))
            .revise_replicas(&object, 7)
            .await;
        assert_eq!(revised.unwrap(), of_kind(api_version, kind, &expected));
    }
}

#[test]
fn pods_and_other_kinds_are_not_revised() {
    let interpreter = resource_interpreter(NativeInterpreter::new(jiff::Timestamp::now));
    let answers = |operation, api_version, kind| {
        interpreter.has_interpreter(operation, &of_kind(api_version, kind, &json!({})))
    };
    assert!(answers(Operation::InterpretReplica, "v1", "Pod"));
    assert!(!answers(Operation::ReviseReplica, "v1", "Pod"));
    assert!(!answers(Operation::InterpretReplica, "apps/v1", "DaemonSet"));
    assert!(!answers(
        Operation::InterpretReplica,
        "apps/v1beta2",
        "Deployment"
    ));
}

#[test]
fn invalid_replicas_are_reported() {
    let replicas = |object: &Value| ReplicaRule::Replicas.replicas(object).unwrap_err().to_string();
    for (object, message) in [
        (
            json!({"spec": {"replicas": "3"}}),
            ".spec.replicas is not an integer",
        ),
        (
            json!({"spec": {"replicas": 3_000_000_000_i64}}),
            ".spec.replicas is too large",
        ),
        (
            json!({"spec": {"template": {"spec": {"containers": 1}}}}),
            ".spec.template: .spec.containers is not a list",
        ),
    ] {
        assert_eq!(replicas(&object), message);
    }
    let revised = ReplicaRule::Job.revise(&json!({"spec": {"parallelism": true}}), 1);
    assert_eq!(
        revised.unwrap_err().to_string(),
        ".spec.parallelism is not an integer"
    );
}
