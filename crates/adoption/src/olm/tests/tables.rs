//! Settings, objects and refusals of a ClusterServiceVersion.

use serde_json::{Value, json};

use super::world::{World, csv, labels};
use crate::olm::{CsvObjects, OlmObservation, OlmOperator, next_steps};

#[test]
fn objects_are_found_by_owner_label_and_crd_list() {
    let csv = csv();
    let csv_objects = CsvObjects::from_csv(&csv);
    let owners = json!([{"uid": "csv"}]);
    let alongside = |csv: &str| json!({"operatorframework.io/installed-alongside-1": csv});
    for (kind, metadata, expected) in [
        (
            "Deployment",
            json!({"namespace": "n", "ownerReferences": owners}),
            true,
        ),
        (
            "Deployment",
            json!({"namespace": "n", "ownerReferences": [{"uid": "another"}]}),
            false,
        ),
        (
            "Deployment",
            json!({"namespace": "m", "ownerReferences": owners}),
            false,
        ),
        ("Deployment", json!({"namespace": "n", "labels": labels()}), true),
        ("Role", json!({"namespace": "m", "labels": labels()}), false),
        ("ClusterRole", json!({"labels": labels()}), true),
        (
            "ClusterRole",
            json!({"labels": {"olm.owner": "widgets.v1", "olm.owner.namespace": "m",
            "olm.owner.kind": "ClusterServiceVersion"}}),
            false,
        ),
        ("ClusterRole", json!({"ownerReferences": owners}), false),
        (
            "CustomResourceDefinition",
            json!({"name": "widgets.example.com"}),
            true,
        ),
        (
            "CustomResourceDefinition",
            json!({"name": "gadgets.example.com"}),
            false,
        ),
        (
            "CustomResourceDefinition",
            json!({"name": "widgets.example.com", "annotations": alongside("n/widgets.v1")}),
            true,
        ),
        (
            "CustomResourceDefinition",
            json!({"name": "widgets.example.com", "annotations": alongside("m/widgets.v1")}),
            false,
        ),
        (
            "RoleBinding",
            json!({"namespace": "kube-system", "name": "widgets-service-auth-reader",
                "labels": {"olm.managed": "true"}}),
            true,
        ),
        (
            "RoleBinding",
            json!({"namespace": "kube-system", "name": "widgets-service-auth-reader"}),
            false,
        ),
        (
            "RoleBinding",
            json!({"namespace": "kube-system", "name": "others-service-auth-reader",
                "labels": {"olm.managed": "true"}}),
            false,
        ),
    ] {
        let object = json!({"kind": kind, "metadata": metadata});
        assert_eq!(csv_objects.contains(&object), expected, "{object}");
    }
}

#[test]
fn a_role_binding_of_the_same_operator_in_another_namespace_stays() {
    let csv = csv();
    let mut binding = json!({"kind": "RoleBinding", "metadata": {"namespace": "kube-system",
        "name": "widgets-service-auth-reader", "labels": {"olm.managed": "true"}}});
    for (namespace, expected) in [("n", true), ("m", false)] {
        binding["subjects"] = json!([{"kind": "ServiceAccount", "name": "widgets", "namespace": namespace}]);
        assert_eq!(
            CsvObjects::from_csv(&csv).contains(&binding),
            expected,
            "{namespace}"
        );
    }
}

#[test]
fn settings_of_olm_become_settings_of_the_bundle_deployment() {
    let own = json!({"watchNamespaces": ["own"], "serviceAccountName": "own"});
    for (annotations, group, spec, expected) in [
        (
            json!({"olm.targetNamespaces": ""}),
            json!({}),
            json!({}),
            json!({}),
        ),
        (
            json!({"olm.targetNamespaces": "a,b"}),
            json!({"serviceAccountName": "scoped"}),
            json!({}),
            json!({"watchNamespaces": ["a", "b"], "serviceAccountName": "scoped"}),
        ),
        (
            json!({"olm.targetNamespaces": "a,b"}),
            json!({"serviceAccountName": "scoped"}),
            own.clone(),
            own,
        ),
        (json!({}), json!({"serviceAccountName": ""}), json!({}), json!({})),
    ] {
        let mut csv = csv();
        csv["metadata"]["annotations"] = annotations;
        let observation = OlmObservation {
            csv: &csv,
            csvs: &[],
            all_subscriptions: &[],
            operator_groups: &[json!({ "spec": group })],
            objects: &[],
        };
        let mut deployment = json!({ "spec": spec });
        OlmOperator::from_observation(&observation).complete(&mut deployment);
        assert_eq!(deployment, json!({ "spec": expected }));
    }
}

/// Returns the refusals of the world after `change`, as text.
fn refused(change: impl FnOnce(&mut Vec<Value>)) -> String {
    let mut world = World::new();
    change(&mut world.objects);
    let refusals = world.next().unwrap_err();
    let words: Vec<_> = refusals.iter().map(ToString::to_string).collect();
    words.join("; ")
}

#[test]
fn operators_that_olm_is_changing_are_refused() {
    assert!(World::new().next().is_ok());
    let refusal =
        refused(|objects| objects[0]["status"] = json!({"phase": "Installing", "message": "waiting"}));
    assert_eq!(
        refusal,
        "its phase is \"Installing\", not Succeeded (waiting): wait until OLM has installed it"
    );
    let refusal = refused(|objects| objects[0]["metadata"]["labels"] = json!({"olm.copiedFrom": "home"}));
    assert!(
        refusal.contains("--namespace") && refusal.contains("home"),
        "{refusal}"
    );
    let refusal = refused(|objects| objects.retain(|object| object["kind"] != "OperatorGroup"));
    assert!(refusal.contains("has 0 OperatorGroups"), "{refusal}");
    let refusal = refused(|objects| {
        objects[0]["spec"]["apiservicedefinitions"] =
            json!({"owned": [{"group": "apis.example.com", "version": "v1"}]});
    });
    assert!(refusal.contains("v1.apis.example.com"), "{refusal}");
    let refusal =
        refused(|objects| objects[0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into());
    assert!(refusal.contains("another client has deleted it"), "{refusal}");
}

#[test]
fn an_upgrade_by_olm_is_not_interrupted() {
    for (replaces, other, is_refused) in [
        (
            Value::Null,
            json!({"metadata": {"name": "widgets.v2"}, "spec": {"replaces": "widgets.v1"}}),
            true,
        ),
        (
            json!("widgets.v0"),
            json!({"metadata": {"name": "widgets.v0"}}),
            true,
        ),
        (
            json!("widgets.v0"),
            json!({"metadata": {"name": "gadgets.v1"}}),
            false,
        ),
    ] {
        let mut csv = csv();
        csv["spec"]["replaces"] = replaces;
        let observation = OlmObservation {
            csv: &csv,
            csvs: &[csv.clone(), other],
            all_subscriptions: &[],
            operator_groups: &[json!({})],
            objects: &[],
        };
        assert_eq!(next_steps(&observation).is_err(), is_refused, "{observation:?}");
    }
}
