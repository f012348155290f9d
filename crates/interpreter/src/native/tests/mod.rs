mod aggregate_status;
mod dependencies;
mod health;
mod reflect_status;
mod replicas;
mod retain;

use serde_json::json;

use super::*;
use crate::ResourceInterpreter;

/// One that asks nobody else.
fn resource_interpreter(interpreter: NativeInterpreter) -> ResourceInterpreter {
    ResourceInterpreter::new(vec![Arc::new(interpreter)])
}

/// The same object of a kind.
fn of_kind(api_version: &str, kind: &str, object: &Value) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    object
}

#[tokio::test]
async fn what_cannot_be_read_is_not_healthy_for_all_that() {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "n"}, "spec": {"replicas": "3"},
    });
    let (_, error) = resource_interpreter(NativeInterpreter::new(jiff::Timestamp::now))
        .health(&deployment)
        .await;
    let error = error.unwrap();
    assert_eq!(
        error.to_string(),
        "NativeInterpreter failed at InterpretHealth of Deployment n/a"
    );
    assert_eq!(error.source.to_string(), ".spec.replicas is not an integer");
}
