//! The name of the OperatorCondition, as OLM v0 tells it to operators: by its presence some of them know how they were
//! installed, and so where their certificates are.

use serde_json::{Value, json};
use windlass_object::json;

/// The variable (`operator-lifecycle-manager`, `pkg/controller/install/deployment.go`).
const VARIABLE: &str = "OPERATOR_CONDITION_NAME";

/// Sets the variable in every container of a Deployment, whatever was there.
pub(super) fn set(deployment: &mut Value, csv_name: &str) {
    let pod_spec = json::fields(deployment, &["spec", "template", "spec"]);
    let containers = pod_spec.get_mut("containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        let Some(container) = container.as_object_mut() else {
            continue;
        };
        let variable = json!({"name": VARIABLE, "value": csv_name});
        let env = container.entry("env").or_insert_with(|| json!([]));
        if env.is_null() {
            *env = json!([]);
        }
        let Some(env) = env.as_array_mut() else { continue };
        match env.iter_mut().find(|known| known["name"] == VARIABLE) {
            Some(known) => *known = variable,
            None => env.push(variable),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_container_knows_the_name_and_keeps_its_other_variables() {
        let mut deployment = json!({"spec": {"template": {"spec": {
            "initContainers": [{"name": "i"}],
            "containers": [
                {"name": "a"},
                {"name": "b", "env": [{"name": "A", "value": "a"}, {"name": VARIABLE, "valueFrom": {}}]},
                {"name": "c", "env": null},
                7,
            ],
        }}}});
        set(&mut deployment, "widgets.v0.1.0");
        let variable = json!({"name": VARIABLE, "value": "widgets.v0.1.0"});
        assert_eq!(
            deployment["spec"]["template"]["spec"],
            json!({
                "initContainers": [{"name": "i"}],
                "containers": [
                    {"name": "a", "env": [variable]},
                    {"name": "b", "env": [{"name": "A", "value": "a"}, variable]},
                    {"name": "c", "env": [variable]},
                    7,
                ],
            })
        );
    }
}
