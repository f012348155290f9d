//! Templates for requests and limits.

use serde_json::{Value, json};

use super::{overridden, pod, workloads};

fn template(operation: &str, resources: &Value, containers: &[&str]) -> Value {
    json!({"type": "resources", "operation": operation, "resources": resources, "containers": containers})
}

/// The resources of the first container after an override.
fn result_of(operation: &str, resources: &Value, before: &Value) -> Value {
    let pod = pod(&json!({"containers": [{"name": "app", "resources": before}]}));
    overridden(&template(operation, resources, &[]), &pod)["spec"]["containers"][0]["resources"].clone()
}

#[test]
fn missing_resources_are_created() {
    let wanted = json!({"limits": {"cpu": "2"}, "requests": {"cpu": "1", "memory": "1Gi"}});
    for operation in ["add", "replace"] {
        for before in [
            json!(null),
            json!({}),
            json!({"limits": null}),
            json!({"limits": {}, "requests": {"cpu": "9"}}),
        ] {
            assert_eq!(result_of(operation, &wanted, &before), wanted, "{before}");
        }
        let without = overridden(&template(operation, &wanted, &[]), &pod(&json!({})));
        assert_eq!(without["spec"]["containers"][0]["resources"], wanted);
        let others = json!({"limits": {"memory": "3Gi", "cpu": "1"}, "claims": [{"name": "a"}]});
        assert_eq!(
            result_of(operation, &json!({"limits": {"cpu": "2"}}), &others),
            json!({"limits": {"memory": "3Gi", "cpu": "2"}, "claims": [{"name": "a"}]})
        );
    }
}

#[test]
fn resources_are_removed_by_name() {
    let named = json!({"limits": {"cpu": "0", "nvidia.com/gpu": 0}});
    let before = json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1"}});
    assert_eq!(
        result_of("remove", &named, &before),
        json!({"limits": {"memory": "1Gi"}, "requests": {"cpu": "1"}})
    );
    for before in [json!(null), json!({}), json!({"limits": null})] {
        assert_eq!(result_of("remove", &named, &before), before);
    }
}

#[test]
fn resources_of_every_workload_are_overridden() {
    let wanted = json!({"limits": {"cpu": "2"}});
    for (object, place) in workloads(&json!({"containers": [{"name": "app"}]})) {
        let after = overridden(&template("add", &wanted, &[]), &object);
        let container = after.pointer(&format!("{place}/containers/0"));
        assert_eq!(
            container.unwrap(),
            &json!({"name": "app", "resources": wanted}),
            "{object}"
        );
    }
}

#[test]
fn objects_without_containers_are_unchanged() {
    for object in [
        json!({"kind": "ConfigMap", "data": {}}),
        json!({"kind": "MachineDeployment", "spec": {"template": {"spec": {"clusterName": "a"}}}}),
        json!({"kind": "Prometheus", "spec": {"containers": [{"name": "a"}]}}),
        json!({"kind": "Odd", "spec": "text"}),
        json!({"kind": "Odd", "spec": null}),
    ] {
        let template = template("add", &json!({"limits": {"cpu": "2"}}), &["*"]);
        assert_eq!(overridden(&template, &object), object);
    }
}

/// The names of the containers that get a limit, init containers last.
fn limited(containers: &[&str]) -> Vec<String> {
    let pod = pod(&json!({
        "containers": [{"name": "app"}, {"name": "sidecar"}, {}],
        "initContainers": [{"name": "setup"}, {"name": "app-setup"}],
    }));
    let after = overridden(
        &template("add", &json!({"limits": {"cpu": "2"}}), containers),
        &pod,
    );
    let all = ["containers", "initContainers"].map(|list| after["spec"][list].as_array().unwrap().clone());
    let has_limit = |container: &&Value| container["resources"]["limits"]["cpu"] == "2";
    let name = |container: &Value| container["name"].as_str().unwrap_or_default().to_owned();
    all.concat().iter().filter(has_limit).map(name).collect()
}

#[test]
fn containers_and_init_containers_are_selected_by_name() {
    assert_eq!(limited(&[]), ["app"]);
    assert_eq!(limited(&["sidecar", "setup", "none"]), ["sidecar", "setup"]);
    assert_eq!(limited(&["*"]), ["app", "sidecar", "", "setup", "app-setup"]);
}

#[test]
fn amounts_are_not_reformatted() {
    for amount in ["500m", "1.5", "1e3", "0.1Gi", "1"] {
        let after = result_of("add", &json!({"limits": {"cpu": amount}}), &json!({}));
        assert_eq!(after, json!({"limits": {"cpu": amount}}));
    }
    let after = result_of(
        "add",
        &json!({"limits": {"nvidia.com/gpu": 2}}),
        &json!({"limits": {"cpu": "1"}}),
    );
    assert_eq!(after, json!({"limits": {"cpu": "1", "nvidia.com/gpu": "2"}}));
}
