//! The OperatorCondition, in which an operator reports whether it can be upgraded. Operators get its name in
//! the same variable as in OLM v0: some detect by its presence how they were installed, and so where their
//! certificates are.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windlass_object::{json, object};

use crate::kinds::BundledKind;

/// The environment variable with the name of the condition (`operator-lifecycle-manager`,
/// `pkg/controller/install/deployment.go`).
const VARIABLE: &str = "OPERATOR_CONDITION_NAME";

const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// Sets the name of the OperatorCondition in the containers of the Deployments. Returns the condition and the
/// RBAC objects that allow the pods to write it.
pub(super) fn render(csv_name: &str, namespace: &str, deployments: &mut [Value]) -> Vec<Value> {
    for deployment in &mut *deployments {
        set(deployment, csv_name);
    }
    objects(csv_name, namespace, deployments)
}

/// Renders the OperatorCondition of a release, and the role for its pods
/// (`pkg/controller/operators/operatorcondition_controller.go`). All have the release's name.
fn objects(csv_name: &str, namespace: &str, deployments: &[Value]) -> Vec<Value> {
    let kind = BundledKind::OPERATOR_CONDITION;
    let metadata = json!({"name": csv_name, "namespace": namespace});
    let names: Vec<_> = deployments
        .iter()
        .filter_map(|deployment| object::text(deployment, "/metadata/name"))
        .collect();
    let accounts: BTreeSet<_> = deployments
        .iter()
        .map(|deployment| {
            object::text(deployment, "/spec/template/spec/serviceAccountName").unwrap_or("default")
        })
        .collect();
    let subjects: Vec<_> = accounts
        .iter()
        // The subject has no namespace, so that of the binding applies. OLM removes the field, so setting it
        // would cause repeated writes.
        .map(|name| json!({"kind": "ServiceAccount", "name": name}))
        .collect();
    vec![
        json!({
            "apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata,
            "spec": {"deployments": names, "serviceAccounts": accounts},
        }),
        json!({
            "apiVersion": RBAC, "kind": "Role", "metadata": metadata,
            "rules": [{
                "apiGroups": [kind.group()], "resources": [kind.plural],
                "resourceNames": [csv_name], "verbs": ["get", "update", "patch"],
            }],
        }),
        json!({
            "apiVersion": RBAC, "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": csv_name},
            "subjects": subjects,
        }),
    ]
}

/// Sets the variable in every container of a Deployment, replacing any value.
fn set(deployment: &mut Value, csv_name: &str) {
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
    use crate::render::sample::keys;

    #[test]
    fn pods_may_write_only_the_operator_condition_of_their_release() {
        let deployment = |name: &str, account: Value| {
            json!({
                "metadata": {"name": name},
                "spec": {"template": {"spec": {"serviceAccountName": account}}},
            })
        };
        let deployments = [
            deployment("a", json!("one")),
            deployment("b", json!(null)),
            deployment("c", json!("one")),
        ];
        let objects = objects("widgets.v0.1.0", "ns", &deployments);
        assert_eq!(
            keys(&objects),
            [
                "OperatorCondition ns/widgets.v0.1.0",
                "Role ns/widgets.v0.1.0",
                "RoleBinding ns/widgets.v0.1.0"
            ]
        );
        assert_eq!(
            objects[0]["spec"],
            json!({"deployments": ["a", "b", "c"], "serviceAccounts": ["default", "one"]})
        );
        assert_eq!(objects[1]["rules"][0]["resourceNames"], json!(["widgets.v0.1.0"]));
        let account = |name: &str| json!({"kind": "ServiceAccount", "name": name});
        assert_eq!(
            objects[2]["subjects"],
            json!([account("default"), account("one")])
        );
    }

    #[test]
    fn the_variable_is_set_in_every_container_next_to_others() {
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
