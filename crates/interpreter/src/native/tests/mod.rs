mod aggregate_status;
mod dependencies;
mod health;
mod reflect_status;
mod replicas;
mod retain;

use serde_json::json;

use super::*;
use crate::ResourceInterpreter;

/// A resource interpreter with only this source.
fn resource_interpreter(interpreter: NativeInterpreter) -> ResourceInterpreter {
    ResourceInterpreter::new(vec![Arc::new(interpreter)])
}

/// Sets the kind of an object.
fn of_kind(api_version: &str, kind: &str, object: &Value) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    object
}

#[tokio::test]
async fn unreadable_health_is_unknown() {
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
