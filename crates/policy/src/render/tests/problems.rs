//! Problems of templates: all at once, each with its field.

use serde_json::{Value, json};

use super::{condition_problems, override_problems};

fn template(template_type: &str, more: &Value) -> Value {
    let mut template = json!({"type": template_type, "operation": "add"});
    for (name, value) in more.as_object().unwrap() {
        template[name] = value.clone();
    }
    template
}

#[test]
fn annotations_and_labels() {
    for (more, problems) in [
        (
            json!({}),
            vec![
                "path: is missing: it is the key, for example /example.com~1owner; only value.stringMap needs none",
                "value: is missing: give value or valueRef",
            ],
        ),
        (
            json!({"path": "/a b", "value": {}}),
            vec![
                "value: has no value: give string, integer, float, boolean, stringSlice, integerSlice, floatSlice or stringMap",
                "path: \"a b\" is not a key: it must have at most 63 letters, digits, -, _ and ., the first and the last a letter or a digit, and a prefix before / must be a domain, for example example.com",
            ],
        ),
        (
            json!({"path": "a_/b", "value": {"stringSlice": ["a"]}}),
            vec![
                "path: \"a_/b\" is not a key: it must have at most 63 letters, digits, -, _ and ., the first and the last a letter or a digit, and a prefix before / must be a domain, for example example.com",
                "value: is a list: give string, integer, float, boolean or stringMap",
            ],
        ),
        (
            json!({"path": "a", "value": {"float": "1,5"}}),
            vec!["value.float: \"1,5\" is not a number: write for example 0.5"],
        ),
        (
            json!({"path": "a", "value": {"string": "a b"}}),
            vec![
                "value: \"a b\" is not the value of a label: it must have at most 63 letters, digits, -, _ and ., the first and the last a letter or a digit",
            ],
        ),
        (
            json!({"value": {"stringMap": {"-": "a", "b": "c d"}}}),
            vec![
                "value.stringMap[-]: \"-\" is not a key: it must have at most 63 letters, digits, -, _ and ., the first and the last a letter or a digit, and a prefix before / must be a domain, for example example.com",
                "value.stringMap[b]: \"c d\" is not the value of a label: it must have at most 63 letters, digits, -, _ and ., the first and the last a letter or a digit",
            ],
        ),
        (
            json!({"path": "a", "value": {"string": "b"}, "valueRef": {"from": "current", "path": "/a"}}),
            vec!["valueRef: must not be combined with value: remove one of them"],
        ),
        (
            json!({"path": "a", "valueRef": {"from": "k8s"}}),
            vec!["valueRef.path: is missing: name a field, for example /metadata/name"],
        ),
        (
            json!({"path": "a", "valueRef": {"from": "http", "path": "/a//b"}}),
            vec![
                "valueRef.path: \"/a//b\" has an empty name in it: name a field, for example /metadata/name",
            ],
        ),
        (
            json!({"path": "a", "valueRef": {"from": "owner", "path": "a[x]"}}),
            vec![
                "valueRef.path: \"a[x]\" is not a path: write for example /spec/containers/0/image, or body.items[0].name",
            ],
        ),
        (
            json!({"path": "a", "valueRef": {"from": "owner"}}),
            vec!["valueRef.path: is missing: name a field, for example /metadata/name"],
        ),
    ] {
        assert_eq!(override_problems(&template("labels", &more)), problems, "{more}");
    }
}

#[test]
fn resources() {
    let problems = |more| override_problems(&template("resources", &more));
    assert_eq!(
        problems(json!({})),
        ["resources: is missing: give limits or requests"]
    );
    assert_eq!(
        problems(json!({"resources": {}})),
        ["resources: is empty: give limits or requests"]
    );
    let amounts = json!({"limits": {"cpu": "1x", "memory": "-1", "": "1", "a": 1}, "requests": {"a": "1001m", "cpu": ""}});
    assert_eq!(
        problems(json!({ "resources": amounts })),
        [
            "resources.limits[]: has no name: name a resource, for example cpu",
            "resources.limits[cpu]: \"1x\" is not a quantity: use for example 500m, 2, 1Gi or 1e3",
            "resources.limits[memory]: \"-1\" is less than 0",
            "resources.requests[a]: is more than the limit",
            "resources.requests[cpu]: \"\" is not a quantity: use for example 500m, 2, 1Gi or 1e3",
        ]
    );
}

#[test]
fn oversell_needs_a_factor_above_0_and_below_1() {
    let problems = |more| override_problems(&template("resourcesOversell", &more));
    assert_eq!(
        problems(json!({})),
        ["resourcesOversell: is missing: give cpuFactor, memoryFactor or diskFactor"]
    );
    for factors in [json!({}), json!({"cpuFactor": "0", "memoryFactor": "0.0"})] {
        assert_eq!(
            problems(json!({ "resourcesOversell": factors })),
            [
                "resourcesOversell: has no factor: give cpuFactor, memoryFactor or diskFactor above 0 and below 1"
            ]
        );
    }
    for factor in ["1", "1.0", "-0.5", "2", "a", "50%", "1e-99", "NaN"] {
        assert_eq!(
            problems(json!({"resourcesOversell": {"cpuFactor": "0.5", "memoryFactor": factor, "diskFactor": factor}})),
            ["memoryFactor", "diskFactor"].map(|name| format!(
                "resourcesOversell.{name}: {factor:?} is not a factor: write a number above 0 and below 1, for example 0.5"
            ))
        );
    }
}

#[test]
fn tolerations() {
    let problems = |more| override_problems(&template("tolerations", &more));
    assert_eq!(
        problems(json!({})),
        ["tolerations: is missing: give at least one"]
    );
    let tolerations = json!([
        {},
        {"key": "a", "operator": "Exists", "value": "b", "effect": "Never"},
        {"key": "a", "tolerationSeconds": 3},
    ]);
    assert_eq!(
        problems(json!({ "tolerations": tolerations })),
        [
            "tolerations[0].operator: must be Exists if key is empty, which means all keys",
            "tolerations[1].value: must be empty if operator is Exists",
            "tolerations[1].effect: must be NoSchedule, PreferNoSchedule or NoExecute",
            "tolerations[2].effect: must be NoExecute if tolerationSeconds is set",
        ]
    );
}

#[test]
fn affinity() {
    let problems = |more| override_problems(&template("affinity", &more));
    assert_eq!(
        problems(json!({})),
        ["affinity: is missing: give nodeAffinity, podAffinity or podAntiAffinity"]
    );
    assert_eq!(
        problems(json!({"affinity": {"nodeAffinity": {}}})),
        [
            "affinity: has no terms: give required or preferred ones of nodeAffinity, podAffinity or podAntiAffinity"
        ]
    );
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let expressions = json!([
        {"key": "", "operator": "Is"},
        {"key": "a", "operator": "In"},
        {"key": "a", "operator": "Exists", "values": ["b"]},
        {"key": "a", "operator": "Gt", "values": []},
    ]);
    let affinity = json!({
        "nodeAffinity": {
            required: {"nodeSelectorTerms": [{}]},
            preferred: [{"weight": 0, "preference": {"matchExpressions": expressions}}],
        },
        "podAntiAffinity": {
            required: [{}],
            preferred: [{"weight": 101, "podAffinityTerm": {"topologyKey": "a", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}}],
        },
    });
    let told = problems(json!({ "affinity": affinity }));
    let node = format!("affinity.nodeAffinity.{preferred}[0]");
    let pods = format!("affinity.podAntiAffinity.{preferred}[0]");
    let expected = [
        format!(
            "affinity.nodeAffinity.{required}.nodeSelectorTerms[0]: is empty: give matchExpressions or matchFields"
        ),
        format!("{node}.weight: is 0: it must be from 1 to 100"),
        format!("{node}.preference.matchExpressions[0].key: is missing: name a label or a field of nodes"),
        format!(
            "{node}.preference.matchExpressions[0].operator: must be In, NotIn, Exists, DoesNotExist, Gt or Lt"
        ),
        format!("{node}.preference.matchExpressions[1].values: is missing: In and NotIn need it"),
        format!(
            "{node}.preference.matchExpressions[2].values: must not be combined with Exists and DoesNotExist"
        ),
        format!("{node}.preference.matchExpressions[3].values: must have one number"),
        format!(
            "affinity.podAntiAffinity.{required}[0].topologyKey: is missing: name a label of nodes, for example kubernetes.io/hostname"
        ),
        format!("{pods}.weight: is 101: it must be from 1 to 100"),
    ];
    assert_eq!(told[..expected.len()], expected);
    assert!(
        told[expected.len()].starts_with(&format!("{pods}.podAffinityTerm.labelSelector: ")),
        "{told:?}"
    );
    assert_eq!(told.len(), expected.len() + 1);
}

#[test]
fn conditions() {
    let current = json!({"from": "current", "path": "/a"});
    let problems = |more: Value| {
        let mut condition = json!({"cond": "Equal", "message": "no", "dataRef": current});
        for (name, value) in more.as_object().unwrap() {
            condition[name] = value.clone();
        }
        condition_problems(&condition)
    };
    for (more, expected) in [
        (
            json!({"message": "", "dataRef": {"from": "k8s"}}),
            vec![
                "condition.message: is missing: describe the problem of the object, and its solution",
                "condition.dataRef.path: is missing: name a field, for example /metadata/name",
                "condition.value: is missing: cond: Equal needs value or valueRef",
            ],
        ),
        (
            json!({"value": {"string": "a"}, "valueRef": current}),
            vec!["condition.valueRef: must not be combined with value: remove one of them"],
        ),
        (
            json!({"cond": "In", "value": {"string": "a"}}),
            vec!["condition.value: is not a list: cond: In needs stringSlice, integerSlice or floatSlice"],
        ),
        (
            json!({"value": {"stringSlice": ["a"]}}),
            vec!["condition.value: is a list: cond: Equal needs string, integer, float or boolean"],
        ),
        (
            json!({"cond": "Gt", "value": {"boolean": true}}),
            vec![
                "condition.value.boolean: is neither less nor greater: use cond: Equal or NotEqual, without valueProcess",
            ],
        ),
        (
            json!({"cond": "Regex", "value": {"integer": 1}}),
            vec!["condition.value: is not text: cond: Regex needs string"],
        ),
        (
            json!({"cond": "In", "value": {"floatSlice": ["1", "x"]}, "valueProcess": {"operation": "/", "operationWith": 0}}),
            vec![
                "condition.valueProcess: cannot be used with cond: In: remove it",
                "condition.valueProcess.operationWith: is 0: nothing can be divided by it",
                "condition.value.floatSlice[1]: \"x\" is not a number: write for example 0.5",
            ],
        ),
        (
            json!({"value": {"string": "a"}, "valueProcess": {"operation": "*", "operationWith": "half"}}),
            vec![
                "condition.valueProcess.operationWith: \"half\" is not a number: write for example 2, \"0.5\" or \"50%\"",
                "condition.value.string: \"a\" is not a number, which valueProcess needs",
            ],
        ),
    ] {
        assert_eq!(problems(more.clone()), expected, "{more}");
    }
}

#[test]
fn each_problem_is_reported_once_with_its_field_on_admission() {
    let template = template(
        "tolerations",
        &json!({"tolerations": [{"operator": "Exists", "value": "b"}]}),
    );
    let policy = json!({
        "apiVersion": crate::api::POLICY_API_VERSION, "kind": "ClusterOverridePolicy", "metadata": {"name": "a"},
        "spec": {"overrideRules": [{"overriders": {"template": template}}]},
    });
    let problems = crate::check(&policy, &crate::tests::engines());
    let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "spec.overrideRules[0].overriders.template.tolerations[0].value: must be empty if operator is Exists"
        ]
    );
}
