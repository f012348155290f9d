use std::time::Instant;

use serde_json::{Value, json};

use super::*;
use crate::{
    AdmissionAttributes, AdmissionOperation, PolicyKey, PolicyKind, api::TargetOperation,
    problem::PolicyProblems,
};

fn cluster() -> PolicyKey {
    PolicyKey {
        kind: PolicyKind::ClusterOverridePolicy,
        namespace: String::new(),
        name: "a".into(),
    }
}

fn inside(namespace: &str) -> PolicyKey {
    PolicyKey {
        kind: PolicyKind::OverridePolicy,
        namespace: namespace.into(),
        name: "a".into(),
    }
}

fn matcher(key: &PolicyKey, selectors: Value, namespaces: Option<Value>) -> (SubjectMatcher, Vec<String>) {
    let mut problems = PolicyProblems::below("spec");
    let selectors: Vec<_> = serde_json::from_value(selectors).unwrap();
    let matcher = SubjectMatcher::new(key, &selectors, namespaces.as_ref(), &mut problems);
    let problems = problems.into_problems();
    (matcher, problems.iter().map(ToString::to_string).collect())
}

fn selects(key: &PolicyKey, selectors: Value, object: &Value) -> bool {
    let (matcher, problems) = matcher(key, selectors, None);
    assert_eq!(problems, [""; 0]);
    matcher
        .matches(&SelectedSubject::new(&AdmissionAttributes::create(object)))
        .unwrap()
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "a", "namespace": "n",
            "labels": {"app": "x", "example.com/tier": "data"},
            "annotations": {"example.com/owner": "me"},
        },
        "spec": {"nodeName": "node", "priority": 7, "hostNetwork": true, "containers": [{"name": "c"}], "none": null},
    })
}

#[test]
fn the_documented_table_of_selectors() {
    let labels = json!({"matchLabels": {"app": "x"}});
    let other_labels = json!({"matchLabels": {"app": "y"}});
    let fields = json!({"matchFields": {"spec.nodeName": "node"}});
    let other_fields = json!({"matchFields": {"spec.nodeName": "other"}});
    for (selector, expected) in [
        (json!({}), true),
        (json!({"name": "a"}), true),
        (json!({"name": "b"}), false),
        // If a name is given, only the name counts.
        (
            json!({"name": "a", "labelSelector": other_labels, "fieldSelector": other_fields}),
            true,
        ),
        (json!({"labelSelector": labels}), true),
        (json!({"labelSelector": other_labels}), false),
        (json!({"fieldSelector": fields}), true),
        (json!({"fieldSelector": other_fields}), false),
        (json!({"labelSelector": labels, "fieldSelector": fields}), true),
        (
            json!({"labelSelector": labels, "fieldSelector": other_fields}),
            false,
        ),
        (
            json!({"labelSelector": other_labels, "fieldSelector": fields}),
            false,
        ),
        (json!({"namespace": "n"}), true),
        (json!({"namespace": "m"}), false),
        (json!({"namespace": "m", "name": "a"}), false),
    ] {
        let mut whole = json!({"apiVersion": "v1", "kind": "Pod"});
        whole
            .as_object_mut()
            .unwrap()
            .extend(selector.as_object().unwrap().clone());
        assert_eq!(
            selects(&cluster(), json!([whole]), &pod()),
            expected,
            "{selector}"
        );
    }
}

#[test]
fn one_matching_selector_is_enough_and_an_empty_list_selects_all() {
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
    let pods = json!({"apiVersion": "v1", "kind": "Pod"});
    assert!(selects(&cluster(), json!([]), &pod()));
    assert!(selects(&cluster(), json!([deployment, pods]), &pod()));
    assert!(!selects(&cluster(), json!([deployment]), &pod()));
    assert!(!selects(
        &cluster(),
        json!([{"apiVersion": "v1", "kind": "pod"}]),
        &pod()
    ));
    assert!(!selects(
        &cluster(),
        json!([{"apiVersion": "apps/v1", "kind": "Pod"}]),
        &pod()
    ));
}

#[test]
fn numbers_booleans_and_names_with_dots_are_compared() {
    let expression = |field: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"field": field, "operator": operator, "value": values}]});
    for (fields, expected) in [
        (json!({"matchFields": {"spec.priority": "7"}}), true),
        (json!({"matchFields": {"spec.hostNetwork": "true"}}), true),
        (json!({"matchFields": {"spec.hostNetwork": "false"}}), false),
        (
            json!({"matchFields": {"metadata.annotations.example.com/owner": "me"}}),
            true,
        ),
        (
            json!({"matchFields": {"metadata.labels.example.com/tier": "data"}}),
            true,
        ),
        (json!({"matchFields": {".metadata.labels.app": "x"}}), true),
        (json!({"matchFields": {"spec.containers.0.name": "c"}}), true),
        (json!({"matchFields": {"spec.containers": "c"}}), false),
        (json!({"matchFields": {"spec.missing": ""}}), false),
        (expression("spec.priority", "In", &["6", "7"]), true),
        (expression("spec.priority", "NotIn", &["7"]), false),
        (expression("spec.missing", "In", &["7"]), false),
        (expression("spec.missing", "NotIn", &["7"]), true),
        (expression("spec.containers", "Exists", &[]), true),
        (expression("spec.none", "Exists", &[]), false),
        (expression("spec.none", "DoesNotExist", &[]), true),
        (
            json!({"matchExpressions": [{"field": "spec.priority", "operator": "In", "values": ["7"]}]}),
            true,
        ),
    ] {
        let selector = json!([{"apiVersion": "v1", "kind": "Pod", "fieldSelector": fields}]);
        assert_eq!(selects(&cluster(), selector, &pod()), expected, "{fields}");
    }
}

#[test]
fn an_override_policy_selects_its_own_namespace_only() {
    assert!(selects(&inside("n"), json!([]), &pod()));
    assert!(!selects(&inside("m"), json!([]), &pod()));
    assert!(!selects(
        &inside("m"),
        json!([{"apiVersion": "v1", "kind": "Pod"}]),
        &pod()
    ));
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}});
    assert!(!selects(&inside("n"), json!([]), &node));
    // The request for a Namespace has its name as namespace.
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    let request = json!({"operation": "UPDATE", "namespace": "n", "name": "n", "object": namespace});
    let attributes = AdmissionAttributes::from_request(&request, None).unwrap();
    assert_eq!(
        matcher(&inside("n"), json!([]), None)
            .0
            .matches(&SelectedSubject::new(&attributes)),
        Ok(false)
    );
    let (_, problems) = matcher(
        &inside("n"),
        json!([{"apiVersion": "v1", "kind": "Pod", "namespace": "m"}]),
        None,
    );
    assert_eq!(
        problems,
        [
            "spec.resourceSelectors[0].namespace: must be empty or \"n\": an OverridePolicy is for objects of its own namespace"
        ]
    );
}

#[test]
fn operations_match_with_a_wildcard() {
    let all = [
        AdmissionOperation::Create,
        AdmissionOperation::Update,
        AdmissionOperation::Delete,
        AdmissionOperation::Connect,
    ];
    for operation in all {
        assert!(operation.is_among(&[]));
        assert!(operation.is_among(&[TargetOperation::All]));
        assert_eq!(
            operation.is_among(&[TargetOperation::Connect]),
            operation == AdmissionOperation::Connect
        );
    }
    assert!(AdmissionOperation::Delete.is_among(&[TargetOperation::Create, TargetOperation::Delete]));
}

#[test]
fn a_connection_is_selected_by_its_options() {
    let options = json!({"apiVersion": "v1", "kind": "PodExecOptions", "container": "c"});
    let request = json!({"operation": "CONNECT", "namespace": "n", "name": "a", "object": options});
    let attributes = AdmissionAttributes::from_request(&request, None).unwrap();
    let selector = json!([{"apiVersion": "v1", "kind": "PodExecOptions", "namespace": "n", "name": "a"}]);
    assert_eq!(
        matcher(&cluster(), selector, None)
            .0
            .matches(&SelectedSubject::new(&attributes)),
        Ok(true)
    );
}

#[test]
fn deleted_objects_are_selected_by_their_last_state() {
    let request = json!({"operation": "DELETE", "object": null, "oldObject": pod()});
    let attributes = AdmissionAttributes::from_request(&request, None).unwrap();
    let selector =
        json!([{"apiVersion": "v1", "kind": "Pod", "labelSelector": {"matchLabels": {"app": "x"}}}]);
    assert_eq!(
        matcher(&cluster(), selector, None)
            .0
            .matches(&SelectedSubject::new(&attributes)),
        Ok(true)
    );
    for (request, expected) in [
        (
            json!({"operation": "DELETE"}),
            "request.oldObject: must be the object that is deleted",
        ),
        (
            json!({"operation": "UPDATE", "object": []}),
            "request.object: must be the object that is written",
        ),
        (
            json!({}),
            "request.operation: must be CREATE, UPDATE, DELETE or CONNECT",
        ),
    ] {
        assert_eq!(
            AdmissionAttributes::from_request(&request, None).unwrap_err(),
            expected
        );
    }
}

#[test]
fn namespaces_are_selected_by_their_labels() {
    let selector = json!({"matchLabels": {"team": "a"}});
    let (matcher, _) = matcher(&cluster(), json!([]), Some(selector));
    let namespace = |team: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": {"team": team}}});
    let pod = pod();
    for (team, expected) in [("a", true), ("b", false)] {
        let namespace = namespace(team);
        let attributes = AdmissionAttributes {
            namespace_object: Some(&namespace),
            ..AdmissionAttributes::create(&pod)
        };
        assert_eq!(matcher.matches(&SelectedSubject::new(&attributes)), Ok(expected));
        // A Namespace is selected by its own labels.
        assert_eq!(
            matcher.matches(&SelectedSubject::new(&AdmissionAttributes::create(&namespace))),
            Ok(expected)
        );
    }
    let node = json!({"apiVersion": "v1", "kind": "Node"});
    assert_eq!(
        matcher.matches(&SelectedSubject::new(&AdmissionAttributes::create(&node))),
        Ok(true)
    );
    assert_eq!(
        matcher
            .matches(&SelectedSubject::new(&AdmissionAttributes::create(&pod)))
            .unwrap_err()
            .to_string(),
        "spec.namespaceSelector needs the labels of the Namespace n, which is unknown"
    );
}

#[test]
fn invalid_selectors_are_reported() {
    let (_, problems) = matcher(
        &cluster(),
        json!([
            {"apiVersion": "*", "kind": "Pod", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            {"apiVersion": "v1", "kind": "Pod", "fieldSelector": {"matchFields": {"a".repeat(2000): "b"}}},
        ]),
        Some(json!({"matchLabels": {"a": 1}})),
    );
    assert_eq!(
        problems,
        [
            "spec.resourceSelectors[0].apiVersion: must not be empty; an empty list of selectors selects all objects",
            "spec.resourceSelectors[0].labelSelector.matchExpressions[0].values: must not be empty",
            "spec.resourceSelectors[1].fieldSelector.matchFields: must not be longer than 512 bytes",
            "spec.namespaceSelector.matchLabels: must be a map of strings",
        ]
    );
}

#[test]
fn the_index_finds_policies_for_a_kind_or_for_all() {
    let mut index = PolicyIndex::default();
    index.add(
        0,
        "",
        [("v1", "Pod"), ("v1", "Pod"), ("apps/v1", "Deployment")].into_iter(),
    );
    index.add(1, "", std::iter::empty());
    for place in 2..100 {
        index.add(place, "", [("v1", "ConfigMap")].into_iter());
    }
    index.add(100, "n", [("v1", "Pod")].into_iter());
    index.add(101, "m", [("v1", "Pod")].into_iter());
    index.add(102, "n", std::iter::empty());
    assert_eq!(index.candidates("n", ("v1", "Pod")), [0, 1, 100, 102]);
    assert_eq!(index.candidates("", ("v1", "Pod")), [0, 1]);
    assert_eq!(index.candidates("m", ("apps/v1", "Deployment")), [0, 1]);
}

#[test]
fn hostile_paths_and_objects_are_looked_up_quickly() {
    // A path that can be split in very many ways.
    let mut object = json!("end");
    for _ in 0..100 {
        object = json!({"a": object.clone(), "a.a": "no", "a.a.a": {"b": "no"}});
    }
    let path = ["a"; 256].join(".");
    let started = Instant::now();
    for _ in 0..100 {
        assert_eq!(field(&object, &path), None);
    }
    let path = ["a"; 100].join(".");
    assert_eq!(field(&object, &path), Some(&json!("end")));
    assert!(started.elapsed().as_secs() < 5);
}
