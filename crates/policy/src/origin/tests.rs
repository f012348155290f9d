use serde_json::{Value, json};

use super::*;
use crate::{api::OriginOverrider, patch, problem::PolicyProblems};

fn overrider(overrider: Value) -> OriginOverrider {
    serde_json::from_value(overrider).unwrap()
}

fn applied(mut object: Value, given: Value) -> Result<Value, String> {
    let patch = apply(&overrider(given), &object)?;
    patch::apply(&mut object, &patch).map_err(|error| error.to_string())?;
    Ok(object)
}

/// The spec of a pod after an override.
#[track_caller]
fn of_pod(spec: Value, given: Value) -> Value {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": spec});
    applied(pod, given).unwrap()["spec"].take()
}

fn problems(overriders: Value) -> Vec<String> {
    let overriders: Vec<_> = serde_json::from_value(overriders).unwrap();
    let mut problems = PolicyProblems::default();
    check(&overriders, &mut problems);
    problems.into_problems().iter().map(ToString::to_string).collect()
}

#[test]
fn annotations_labels_and_node_selectors_are_set_and_removed() {
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"labels": {"a": "1", "b": "2"}}});
    for (operation, replace, labels, expected) in [
        (
            "add",
            false,
            json!({"a": "9", "c.io/d": "3"}),
            json!({"a": "9", "b": "2", "c.io/d": "3"}),
        ),
        (
            "replace",
            false,
            json!({"c": "3"}),
            json!({"a": "1", "b": "2", "c": "3"}),
        ),
        ("replace", true, json!({"c": "3"}), json!({"c": "3"})),
        ("remove", false, json!({"a": "", "x": ""}), json!({"b": "2"})),
    ] {
        let given = json!({"type": "labels", "operation": operation, "replace": replace, "labels": labels});
        assert_eq!(
            applied(object.clone(), given).unwrap()["metadata"]["labels"],
            expected
        );
    }
    let given = json!({"type": "annotations", "operation": "add", "annotations": {"0": "zero"}});
    assert_eq!(
        applied(object, given).unwrap()["metadata"]["annotations"],
        json!({"0": "zero"})
    );
    let given = json!({"type": "nodeSelector", "operation": "add", "nodeSelector": {"disk": "ssd"}});
    assert_eq!(of_pod(json!({}), given), json!({"nodeSelector": {"disk": "ssd"}}));
}

#[test]
fn all_kinds_with_pod_templates_are_supported() {
    let given = json!({"type": "hostNetwork", "operation": "replace", "hostNetwork": true});
    for (api_version, kind, path) in [
        ("v1", "Pod", "/spec"),
        ("v1", "ReplicationController", "/spec/template/spec"),
        ("apps/v1", "Deployment", "/spec/template/spec"),
        ("apps/v1", "StatefulSet", "/spec/template/spec"),
        ("apps/v1", "DaemonSet", "/spec/template/spec"),
        ("apps/v1", "ReplicaSet", "/spec/template/spec"),
        ("batch/v1", "Job", "/spec/template/spec"),
        ("batch/v1", "CronJob", "/spec/jobTemplate/spec/template/spec"),
    ] {
        let object = json!({"apiVersion": api_version, "kind": kind});
        let changed = applied(object, given.clone()).unwrap();
        assert_eq!(
            changed.pointer(path),
            Some(&json!({"hostNetwork": true})),
            "{kind}"
        );
    }
    for other in [
        json!({"apiVersion": "v1", "kind": "ConfigMap"}),
        json!({"apiVersion": "example.com/v1", "kind": "Deployment"}),
    ] {
        assert_eq!(applied(other.clone(), given.clone()), Ok(other));
    }
}

#[test]
fn single_values_are_set_and_removed() {
    let scheduler =
        |operation: &str| json!({"type": "schedulerName", "operation": operation, "schedulerName": "s"});
    assert_eq!(of_pod(json!({}), scheduler("add")), json!({"schedulerName": "s"}));
    assert_eq!(
        of_pod(json!({"schedulerName": "x"}), scheduler("replace")),
        json!({"schedulerName": "s"})
    );
    assert_eq!(
        of_pod(json!({"schedulerName": "x"}), scheduler("remove")),
        json!({})
    );
}

#[test]
fn tolerations_are_identified_by_all_but_their_seconds() {
    let current = json!({"tolerations": [
        {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
        {"key": "b", "value": "v"},
        {"key": "b", "value": "w"},
    ]});
    let of = |operation: &str, replace: bool, tolerations: Value| {
        let given = json!({"type": "tolerations", "operation": operation, "replace": replace, "tolerations": tolerations});
        of_pod(current.clone(), given)["tolerations"].take()
    };
    let more = json!([{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9}, {"key": "c", "operator": "Exists"}]);
    assert_eq!(
        of("add", false, more.clone()),
        json!([more[0], {"key": "b", "value": "v"}, {"key": "b", "value": "w"}, more[1]])
    );
    assert_eq!(of("replace", true, more.clone()), more);
    // Several tolerations are removed, and no others.
    let gone = json!([{"key": "a", "operator": "Exists", "effect": "NoExecute"}, {"key": "b", "operator": "Equal", "value": "v"}]);
    assert_eq!(
        of("remove", false, gone.clone()),
        json!([{"key": "b", "value": "w"}])
    );
    let remove = json!({"type": "tolerations", "operation": "remove", "tolerations": gone});
    assert_eq!(of_pod(json!({}), remove), json!({}));
    let add = json!({"type": "tolerations", "operation": "add", "tolerations": more});
    assert_eq!(of_pod(json!({}), add), json!({"tolerations": more}));
}

#[test]
fn each_part_of_affinity_is_set() {
    let term = |key: &str| json!({"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": key}]});
    let current = json!({"affinity": {"podAffinity": term("old"), "nodeAffinity": {}}});
    let of = |operation: &str, affinity: Value| {
        of_pod(
            current.clone(),
            json!({"type": "affinity", "operation": operation, "affinity": affinity}),
        )
    };
    let given = json!({"podAffinity": term("new"), "podAntiAffinity": term("new")});
    assert_eq!(
        of("add", given.clone()),
        json!({"affinity": {"podAffinity": term("old"), "nodeAffinity": {}, "podAntiAffinity": term("new")}})
    );
    assert_eq!(of("replace", given.clone()), json!({"affinity": given}));
    assert_eq!(
        of("remove", json!({"podAffinity": {}})),
        json!({"affinity": {"nodeAffinity": {}}})
    );
    assert_eq!(of("remove", json!({})), json!({}));
}

#[test]
fn spread_constraints_are_identified_by_key_and_when_unsatisfiable() {
    let constraint = |key: &str, skew: i64| json!({"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule"});
    let current = json!({"topologySpreadConstraints": [constraint("zone", 1), constraint("host", 1)]});
    let of = |operation: &str, constraints: Value| {
        let given = json!({"type": "topologySpreadConstraints", "operation": operation, "topologySpreadConstraints": constraints});
        of_pod(current.clone(), given)
    };
    let given = json!([constraint("zone", 5), constraint("rack", 5)]);
    assert_eq!(
        of("add", given.clone()),
        json!({"topologySpreadConstraints": [constraint("zone", 5), constraint("host", 1), constraint("rack", 5)]})
    );
    assert_eq!(
        of("replace", given.clone()),
        json!({"topologySpreadConstraints": given})
    );
    assert_eq!(
        of("remove", given),
        json!({"topologySpreadConstraints": [constraint("host", 1)]})
    );
    assert_eq!(of("remove", json!([])), json!({}));
}

fn containers() -> Value {
    let limits =
        |cpu: &str, memory: &str| json!({"limits": {"cpu": cpu, "memory": memory}, "requests": {"cpu": cpu}});
    json!({
        "initContainers": [{"name": "i", "resources": limits("1", "1Gi")}],
        "containers": [{"name": "a", "resources": limits("1.5", "1.5Gi")}, {"name": "b"}],
    })
}

#[test]
fn resources_apply_to_the_selected_containers() {
    let given = |chosen: Value, operation: &str| {
        let mut given = json!({"type": "resourceRequirements", "operation": operation, "resourceRequirements": {"requests": {"cpu": "250m"}}});
        given
            .as_object_mut()
            .unwrap()
            .extend(chosen.as_object().unwrap().clone());
        given
    };
    let only = json!({"requests": {"cpu": "250m"}});
    let of = |chosen: Value, operation: &str| {
        let spec = of_pod(containers(), given(chosen, operation));
        [
            spec["initContainers"][0]["resources"].clone(),
            spec["containers"][0]["resources"].clone(),
            spec["containers"][1]["resources"].clone(),
        ]
    };
    let [i, a, b] = of(json!({}), "replace");
    assert_eq!((a, b), (only.clone(), Value::Null));
    assert_eq!(i["limits"]["cpu"], "1");
    let [_, a, b] = of(json!({"containerCount": 1}), "replace");
    assert_eq!((a["limits"]["cpu"].clone(), b), (json!("1.5"), only.clone()));
    assert_eq!(
        of(json!({"containers": ["*"]}), "replace"),
        [&only, &only, &only].map(Clone::clone)
    );
    let [i, a, b] = of(json!({"containers": ["i", "b", "none"]}), "add");
    assert_eq!(
        i,
        json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "250m"}})
    );
    assert_eq!((a["requests"]["cpu"].clone(), b), (json!("1.5"), only));
    let [_, a, _] = of(json!({}), "remove");
    assert_eq!(a["requests"], json!({}));
    let error = applied(
        json!({"apiVersion": "v1", "kind": "Pod", "spec": containers()}),
        given(json!({"containerCount": 2}), "replace"),
    );
    assert_eq!(
        error,
        Err("containerCount is 2, but the object has 2 containers".into())
    );
}

#[test]
fn any_existing_quantity_is_oversold() {
    let given = json!({
        "type": "resourceOversell", "operation": "replace", "containers": ["*"],
        "resourcesOversell": {"limits": {"cpu": "0.5", "memory": "0.2"}, "requests": {"cpu": "0.1", "memory": "0.5"}},
    });
    let spec = of_pod(containers(), given);
    assert_eq!(
        spec["initContainers"][0]["resources"],
        json!({"limits": {"cpu": "500m", "memory": "214748365"}, "requests": {"cpu": "100m"}})
    );
    assert_eq!(
        spec["containers"][0]["resources"],
        json!({"limits": {"cpu": "750m", "memory": "322122548"}, "requests": {"cpu": "150m"}})
    );
    assert_eq!(spec["containers"][1], json!({"name": "b"}));
    let odd = json!({"containers": [{"resources": {"limits": {"cpu": "much"}}}]});
    let given = json!({"type": "resourceOversell", "operation": "replace", "resourcesOversell": {"limits": {"cpu": "0.5"}}});
    assert_eq!(
        applied(json!({"apiVersion": "v1", "kind": "Pod", "spec": odd}), given),
        Err("/spec/containers/0/resources/limits/cpu: \"much\" is not a quantity: use for example 500m, 2, 1Gi or 1e3".into())
    );
}

#[test]
fn tolerations_are_validated_as_in_an_api_server() {
    let check = |toleration: Value| {
        problems(json!([{"type": "tolerations", "operation": "add", "tolerations": [toleration]}]))
    };
    for good in [
        json!({"operator": "Exists"}),
        json!({"key": "example.com/a", "value": "b", "effect": "NoSchedule"}),
        json!({"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}),
        json!({"key": "a", "operator": "Equal"}),
    ] {
        assert_eq!(check(good), [""; 0]);
    }
    let at = "origin[0].tolerations[0]";
    for (wrong, expected) in [
        (
            json!({}),
            format!("{at}.operator: must be Exists if key is empty, which means all keys"),
        ),
        (
            json!({"key": "a b"}),
            format!("{at}.key: \"a b\" is not the key of a label"),
        ),
        (
            json!({"key": "a", "operator": "Exists", "value": "b"}),
            format!("{at}.value: must be empty if operator is Exists"),
        ),
        (
            json!({"key": "a", "value": "b c"}),
            format!("{at}.value: \"b c\" is not the value of a label"),
        ),
        (
            json!({"key": "a", "effect": "Now"}),
            format!("{at}.effect: must be NoSchedule, PreferNoSchedule or NoExecute"),
        ),
        (
            json!({"key": "a", "tolerationSeconds": 1}),
            format!("{at}.effect: must be NoExecute if tolerationSeconds is set"),
        ),
    ] {
        assert_eq!(check(wrong), [expected]);
    }
}

#[test]
fn invalid_overrides_are_reported() {
    let oversell = |fields: Value| {
        let mut given = json!({"type": "resourceOversell", "operation": "replace", "resourcesOversell": {"requests": {"cpu": "0.5"}}});
        given
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        given
    };
    let requirements = json!({"type": "resourceRequirements", "operation": "replace", "resourceRequirements": {"limits": {"cpu": "much"}}});
    assert_eq!(
        problems(json!([
            oversell(json!({})),
            requirements,
            oversell(json!({"operation": "remove", "containerCount": 1, "resourcesOversell": {"limit": {"cpu": "-1"}, "requests": {"cpu": "50m", "memory": "0"}}})),
            {"type": "labels", "operation": "add", "labels": {"a b": "c d"}},
            {"type": "topologySpreadConstraints", "operation": "add", "topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "a", "whenUnsatisfiable": "Never"}]},
        ])),
        [
            "origin[1].resourceRequirements.limits.cpu: \"much\" is not a quantity: use for example 500m, 2, 1Gi or 1e3",
            "origin[1]: resourceRequirements and resourceOversell are for the same container as in origin[0]: use one of them",
            "origin[2].operation: must be replace: resourceOversell multiplies the existing value",
            "origin[2].resourcesOversell: \"limit\" must be requests or limits",
            "origin[2].resourcesOversell.limit.cpu: \"-1\" must be a number above 0 and up to 1000",
            "origin[2].resourcesOversell.requests.cpu: \"50m\" must be a number above 0 and up to 1000",
            "origin[2].resourcesOversell.requests.memory: \"0\" must be a number above 0 and up to 1000",
            "origin[3].labels: \"a b\" is not a key of labels",
            "origin[3].labels: \"c d\" is not the value of a label",
            "origin[4].topologySpreadConstraints[0].maxSkew: must be greater than 0",
            "origin[4].topologySpreadConstraints[0].whenUnsatisfiable: must be DoNotSchedule or ScheduleAnyway",
        ]
    );
}

#[test]
fn huge_lists_are_merged_quickly() {
    let many = |from: usize| {
        (from..from + 20_000)
            .map(|number| json!({"key": format!("k{number}"), "operator": "Exists"}))
            .collect::<Vec<_>>()
    };
    let given = json!({"type": "tolerations", "operation": "add", "tolerations": many(10_000)});
    let started = std::time::Instant::now();
    let spec = of_pod(json!({"tolerations": many(0)}), given);
    assert_eq!(spec["tolerations"].as_array().unwrap().len(), 30_000);
    assert!(started.elapsed().as_secs() < 10);
}
