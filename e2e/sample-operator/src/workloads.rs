//! Karmada's resource interpreter webhook for workloads, with the results of Karmada's own example
//! (`examples/customresourceinterpreter`), and the dependencies that workloads declare.

use interpreter::{
    Answer, Operation,
    webhook::{
        ResourceInterpreterRequest,
        server::{AddInterpreterError, InterpreterServer},
    },
};
use serde_json::{Value, json};

/// The path of the interpreter webhook.
pub(crate) const WORKLOADS: &str = "/interpreter-workload";

const OPERATIONS: [Operation; 6] = [
    Operation::InterpretReplica,
    Operation::ReviseReplica,
    Operation::Retain,
    Operation::AggregateStatus,
    Operation::InterpretHealth,
    Operation::InterpretDependency,
];

/// Returns the interpreter webhook for workloads.
pub(crate) fn interpreter() -> Result<InterpreterServer, AddInterpreterError> {
    InterpreterServer::new().handle(WORKLOADS, &OPERATIONS, async |request, _| answer(request))
}

fn answer(request: ResourceInterpreterRequest<'static>) -> Result<Answer, String> {
    let mut object = request.object.into_owned();
    let replicas = object.pointer("/spec/replicas").and_then(Value::as_i64);
    let replicas = replicas.ok_or("spec.replicas: must be a number")?;
    Ok(match request.operation {
        Operation::InterpretReplica => Answer::Replica {
            replicas: i32::try_from(replicas).map_err(|_| "spec.replicas: is too large")?,
            requirements: None,
        },
        Operation::ReviseReplica => {
            object["spec"]["replicas"] = request.desired_replicas.into();
            Answer::Object(object)
        }
        Operation::Retain => {
            let observed = request.observed_object.as_deref();
            if let Some(paused) = observed.and_then(|observed| observed.pointer("/spec/paused")) {
                object["spec"]["paused"] = paused.clone();
            }
            Answer::Object(object)
        }
        Operation::AggregateStatus => {
            let ready = request
                .aggregated_status
                .iter()
                .map(|item| ready(item.status.as_ref()));
            object["status"] = json!({"readyReplicas": ready.sum::<i64>()});
            Answer::Object(object)
        }
        Operation::InterpretHealth => Answer::Health(ready(object.get("status")) == replicas),
        Operation::InterpretDependency => {
            let needs = object.pointer("/spec/dependencies").cloned();
            let needs = serde_json::from_value(needs.unwrap_or_else(|| json!([])));
            Answer::Dependency(needs.map_err(|error| format!("spec.dependencies: {error}"))?)
        }
        other => return Err(format!("{other} is not supported")),
    })
}

fn ready(status: Option<&Value>) -> i64 {
    let ready = status.and_then(|status| status.get("readyReplicas"));
    ready.and_then(Value::as_i64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use interpreter::{Question, question::AggregatedStatusItem};

    use super::*;

    fn workload(replicas: i64, ready: i64) -> Value {
        json!({
            "apiVersion": "workload.example.io/v1alpha1", "kind": "Workload", "metadata": {"name": "w"},
            "spec": {"replicas": replicas}, "status": {"readyReplicas": ready},
        })
    }

    #[tokio::test]
    async fn workloads_are_interpreted_as_in_the_example() {
        let (object, observed) = (workload(2, 1), json!({"spec": {"paused": true}}));
        let items = [1, 4].map(|ready| AggregatedStatusItem {
            status: Some(json!({"readyReplicas": ready})),
            ..AggregatedStatusItem::default()
        });
        let mut retained = object.clone();
        retained["spec"]["paused"] = true.into();
        let server = interpreter().unwrap();
        for (operation, expected) in [
            (
                Operation::InterpretReplica,
                Answer::Replica {
                    replicas: 2,
                    requirements: None,
                },
            ),
            (Operation::ReviseReplica, Answer::Object(workload(3, 1))),
            (Operation::Retain, Answer::Object(retained)),
            (Operation::AggregateStatus, Answer::Object(workload(2, 5))),
            (Operation::InterpretHealth, Answer::Health(false)),
            (Operation::InterpretDependency, Answer::Dependency(vec![])),
        ] {
            let question = Question::new(operation, &object, &observed, 3, Some(&items));
            assert_eq!(server.call_directly(WORKLOADS, question).await.unwrap(), expected);
        }
        let question = Question::Health {
            object: &json!({"apiVersion": "v1", "kind": "Pod"}),
        };
        let error = server.call_directly(WORKLOADS, question).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the webhook failed with status 500: spec.replicas: must be a number"
        );
        let question = Question::Status { object: &object };
        assert!(server.call_directly(WORKLOADS, question).await.is_err());
    }
}
