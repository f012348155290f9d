//! The default of a container's termination message.

use serde_json::Value;
use windlass_object::json;

/// Uses the end of the log as termination message of a failing container, so that the status of its pod and
/// the condition of the BundleDeployment explain the failure. The API server's default is a file that hardly
/// any operator writes.
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
    fn the_policy_of_the_bundle_is_kept() {
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
