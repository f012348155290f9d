//! Configs with retentions, as in Karmada's proposal.

use serde_json::{Value, json};

use crate::{
    ResourceInterpreter,
    customization::{ConfiguredRetention, CustomizationState, Customizations, admit},
};

fn config(retentions: Value) -> Value {
    json!({
        "apiVersion": "config.karmada.io/v1alpha1", "kind": "Config", "metadata": {"name": "c"},
        "spec": {"retentions": retentions},
    })
}

fn read(config: &Value) -> Result<Vec<ConfiguredRetention>, Vec<String>> {
    ConfiguredRetention::from_config(config)
        .unwrap()
        .map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

#[tokio::test]
async fn each_retention_becomes_a_customization() {
    let retentions = read(&config(json!([
        {"apiVersion": "example.com/v1", "kind": "Database", "fields": [".spec.size", "{.spec.node}"]},
        {"apiVersion": "example.com/v1", "kind": "Cache", "retentionLua": "function Retain(a, b) a.spec = b.spec return a end"},
        // Only the body of the function.
        {"apiVersion": "example.com/v1", "kind": "Queue", "fields": [".spec.size"],
         "retentionLua": "desiredObj.spec.node = runtimeObj.spec.node return desiredObj"},
        {"apiVersion": "example.com/v2", "kind": "Cache", "fields": null},
    ])))
    .unwrap();
    let customizations = Customizations::default();
    let objects: Vec<_> = retentions
        .into_iter()
        .map(|retention| retention.customization)
        .collect();
    for state in customizations.replace(&objects) {
        assert_eq!(state, CustomizationState::Used);
    }
    let interpreter = ResourceInterpreter::new(vec![std::sync::Arc::new(customizations)]);
    for (version, kind, expected) in [
        ("v1", "Database", json!({"size": 2, "node": "n", "own": 1})),
        ("v1", "Cache", json!({"size": 2, "node": "n"})),
        ("v1", "Queue", json!({"size": 2, "node": "n", "own": 1})),
        ("v2", "Cache", json!({"size": 1, "own": 1})),
        ("v2", "Queue", json!({"size": 1, "own": 1})),
    ] {
        let object = |spec: Value| {
            json!({
                "apiVersion": format!("example.com/{version}"), "kind": kind, "metadata": {"name": "x"},
                "spec": spec,
            })
        };
        let desired = object(json!({"size": 1, "own": 1}));
        let observed = object(json!({"size": 2, "node": "n"}));
        let kept = interpreter.retain(&desired, &observed).await.unwrap();
        assert_eq!(kept["spec"], expected, "{version} {kind}");
    }
}

#[test]
fn problems_are_reported_for_the_config() {
    let twice = json!({"apiVersion": "v1", "kind": "Service", "fields": []});
    for (config, expected) in [
        (
            json!({"apiVersion": "config.karmada.io/v1alpha1", "kind": "Config", "spec": {"retentions": [twice, twice]}}),
            vec![
                "metadata.name: must not be empty",
                "spec.retentions[1]: has the same kind as retentions[0]",
            ],
        ),
        (
            config(json!([{"apiVersion": "v1", "kind": "Service", "fields": ".spec"}])),
            vec!["spec.retentions[0].fields: invalid type: string \".spec\", expected a sequence"],
        ),
        (
            config(json!(1)),
            vec!["spec.retentions: invalid type: integer `1`, expected a sequence"],
        ),
    ] {
        assert_eq!(read(&config).unwrap_err(), expected);
    }
    let [retention] = &read(&config(
        json!([{"apiVersion": "v1", "fields": ["[", ".spec.a"], "retentionLua": "("}]),
    ))
    .unwrap()[..] else {
        panic!("not one")
    };
    let problems = admit(&retention.customization, None, &[]).unwrap_err();
    let mut fields: Vec<_> = problems
        .iter()
        .map(|problem| retention.problem(problem).path)
        .collect();
    fields.sort();
    assert_eq!(
        fields,
        [
            "spec.retentions[0].fields[0]",
            "spec.retentions[0].kind",
            "spec.retentions[0].retentionLua",
        ]
    );
}

#[test]
fn other_objects_are_not_configs() {
    for (api_version, kind) in [
        ("config.karmada.io/v1alpha1", "ResourceInterpreterCustomization"),
        ("kubelet.config.k8s.io/v1beta1", "Config"),
        ("v1", "Config"),
    ] {
        assert_eq!(
            ConfiguredRetention::from_config(&json!({"apiVersion": api_version, "kind": kind})),
            None
        );
    }
}
