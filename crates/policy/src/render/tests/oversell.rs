//! Templates for requests as a fraction of limits.

use serde_json::{Value, json};

use super::{overridden, patches, pod, workloads};

fn template(operation: &str, factors: &Value, containers: &[&str]) -> Value {
    json!({
        "type": "resourcesOversell", "operation": operation, "resourcesOversell": factors, "containers": containers,
    })
}

/// The requests of the first container after an override.
fn requests(operation: &str, factors: &Value, resources: &Value) -> Value {
    let pod = pod(&json!({"containers": [{"name": "app", "resources": resources}]}));
    let after = overridden(&template(operation, factors, &[]), &pod);
    after["spec"]["containers"][0]["resources"]["requests"].clone()
}

#[test]
fn requests_are_a_fraction_of_limits() {
    let factors = json!({"cpuFactor": "0.5", "memoryFactor": "0.2", "diskFactor": "0.1"});
    let limits = json!({"cpu": "1", "memory": "1Gi", "ephemeral-storage": "10G"});
    let wanted = json!({"cpu": "500m", "memory": "214748365", "ephemeral-storage": "1000000000"});
    for operation in ["add", "replace"] {
        for before in [json!(null), json!({}), json!({"cpu": "9", "memory": "9Gi"})] {
            let after = requests(
                operation,
                &factors,
                &json!({"limits": limits, "requests": before}),
            );
            assert_eq!(after, wanted, "{before}");
        }
        let others = json!({"limits": limits, "requests": {"nvidia.com/gpu": "1"}});
        let after = requests(operation, &json!({"cpuFactor": "0.5"}), &others);
        assert_eq!(after, json!({"nvidia.com/gpu": "1", "cpu": "500m"}));
    }
}

#[test]
fn remove_resets_oversold_requests() {
    let before = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "500m", "memory": "1Mi"}});
    let factors = json!({"cpuFactor": "0", "memoryFactor": "0"});
    // Without a limit there was nothing to oversell.
    assert_eq!(requests("remove", &factors, &before), json!({"memory": "1Mi"}));
    let without = pod(&json!({}));
    assert_eq!(
        overridden(&template("remove", &factors, &["*"]), &without),
        without
    );
}

#[test]
fn requests_of_every_workload_are_overridden() {
    let spec = json!({
        "containers": [{"name": "app", "resources": {"limits": {"cpu": "2"}}}],
        "initContainers": [{"name": "setup", "resources": {"limits": {"cpu": "4"}}}],
    });
    for (object, place) in workloads(&spec) {
        let after = overridden(&template("add", &json!({"cpuFactor": "0.5"}), &["*"]), &object);
        let requested = |container: &str| {
            after
                .pointer(&format!("{place}/{container}/0/resources/requests/cpu"))
                .unwrap()
        };
        assert_eq!(
            (requested("containers"), requested("initContainers")),
            (&json!("1000m"), &json!("2000m"))
        );
    }
}

#[test]
fn every_quantity_is_parsed() {
    for (limit, half) in [
        (json!("1"), "500m"),
        (json!("1.5"), "750m"),
        (json!("500m"), "250m"),
        (json!(".5"), "250m"),
        (json!("1."), "500m"),
        (json!("+2"), "1000m"),
        (json!("1e3"), "500000m"),
        (json!("1E1"), "5000m"),
        (json!("15e-1"), "750m"),
        (json!("2k"), "1000000m"),
        (json!("100000u"), "50m"),
        (json!("5000000n"), "3m"),
        (json!("3m"), "2m"),
        (json!("0"), "0m"),
        (json!(2), "1000m"),
        (json!(0.7), "350m"),
    ] {
        let after = requests(
            "add",
            &json!({"cpuFactor": "0.5"}),
            &json!({"limits": {"cpu": limit}}),
        );
        assert_eq!(after, json!({"cpu": half}), "{limit}");
    }
    for (limit, half) in [
        ("1Gi", "536870912"),
        ("1.5Gi", "805306368"),
        ("1G", "500000000"),
        ("512Mi", "268435456"),
        ("64Ki", "32768"),
        ("0.5Ti", "274877906944"),
        ("1Pi", "562949953421312"),
        ("2Ei", "1152921504606846976"),
        ("7E", "3500000000000000000"),
        ("129e6", "64500000"),
        ("1000", "500"),
        ("3", "2"),
    ] {
        let after = requests(
            "add",
            &json!({"memoryFactor": "0.5"}),
            &json!({"limits": {"memory": limit}}),
        );
        assert_eq!(after, json!({"memory": half}), "{limit}");
    }
}

#[test]
fn without_a_limit_there_is_no_request() {
    let factors = json!({"cpuFactor": "0.5", "memoryFactor": "0.5"});
    for resources in [
        json!(null),
        json!({}),
        json!({"limits": null}),
        json!({"limits": {}}),
    ] {
        assert_eq!(requests("add", &factors, &resources), json!(null), "{resources}");
    }
    let only_cpu = json!({"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}});
    assert_eq!(
        requests("add", &factors, &only_cpu),
        json!({"memory": "1Gi", "cpu": "500m"})
    );
    // API servers reject this quantity anyway.
    for limit in [json!("abc"), json!("-1"), json!("9".repeat(40)), json!("1e99")] {
        let before = json!({"limits": {"cpu": limit}, "requests": {"cpu": "1"}});
        assert_eq!(requests("add", &factors, &before), json!({"cpu": "1"}), "{limit}");
    }
}

#[test]
fn empty_requests_are_removed() {
    let without = pod(
        &json!({"containers": [{"name": "a", "resources": {"limits": {"memory": "1Gi"}}}, {"name": "b"}]}),
    );
    let template = template("add", &json!({"cpuFactor": "0.5"}), &["*"]);
    assert_eq!(patches(&template, &json!({"object": without})), json!([]));
}
