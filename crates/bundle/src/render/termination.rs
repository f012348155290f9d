//! What a container says last, where the bundle says nothing else.

use serde_json::Value;
use windlass_object::json;

/// Lets the end of the log of a container that fails be its termination message: the status of its pod then says why it
/// failed, and with it the condition of the BundleDeployment. The API server's default is a file that hardly any
/// operator writes.
pub(super) fn fall_back_to_logs(deployment: &mut Value) {
    let pod_spec = json::fields(deployment, &["spec", "template", "spec"]);
    for field in ["initContainers", "containers"] {
        let containers = pod_spec.get_mut(field).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            json::fields(container, &[])
                .entry("terminationMessagePolicy")
                .or_insert_with(|| "FallbackToLogsOnError".into());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_bundle_says_stays_and_nothing_else_appears() {
        let pods = |containers: &Value| json!({"spec": {"template": {"spec": {"containers": containers}}}});
        let mut deployment = pods(&json!([{"name": "a"}, {"name": "b", "terminationMessagePolicy": "File"}]));
        fall_back_to_logs(&mut deployment);
        let expected = json!([
            {"name": "a", "terminationMessagePolicy": "FallbackToLogsOnError"},
            {"name": "b", "terminationMessagePolicy": "File"},
        ]);
        assert_eq!(deployment, pods(&expected));
    }
}
