//! What Go encodes for each hook is decoded and encoded again unchanged (`tests/cluster-api-examples.json`:
//! encoded by Go's `encoding/json` from the types of `sigs.k8s.io/cluster-api/api` v1.14.2, once with every
//! field and once with none).

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::{
    Catalog, Hook, HookResponse, go_json,
    response::{HookOutcome, ResponseStatus},
};

/// Operations on a hook, independent of its types.
struct Case {
    name: &'static str,
    request: fn(&Value) -> Value,
    response: fn(&Value) -> Value,
    default_response: fn() -> Value,
    with_outcome: fn(HookOutcome) -> (HookOutcome, Value),
    outcome: fn(&Value) -> HookOutcome,
}

impl Case {
    fn for_hook<H: Hook>() -> Self {
        Self {
            name: H::NAME,
            request: round_trip::<H::Request>,
            response: round_trip::<H::Response>,
            default_response: || serde_json::to_value(H::Response::default()).unwrap(),
            with_outcome: |outcome| {
                let mut response = H::Response::default();
                response.set_outcome(outcome);
                (response.outcome(), serde_json::to_value(&response).unwrap())
            },
            outcome: |response| read::<H::Response>(response).outcome(),
        }
    }
}

fn read<T: serde::de::DeserializeOwned>(body: &Value) -> T {
    go_json::read(body.to_string().as_bytes()).unwrap()
}

fn round_trip<T: serde::de::DeserializeOwned + serde::Serialize>(body: &Value) -> Value {
    serde_json::to_value(read::<T>(body)).unwrap()
}

fn cases() -> Vec<Case> {
    vec![
        Case::for_hook::<AfterClusterUpgrade>(),
        Case::for_hook::<AfterControlPlaneInitialized>(),
        Case::for_hook::<AfterControlPlaneUpgrade>(),
        Case::for_hook::<AfterWorkersUpgrade>(),
        Case::for_hook::<BeforeClusterCreate>(),
        Case::for_hook::<BeforeClusterDelete>(),
        Case::for_hook::<BeforeClusterUpgrade>(),
        Case::for_hook::<BeforeControlPlaneUpgrade>(),
        Case::for_hook::<BeforeWorkersUpgrade>(),
        Case::for_hook::<CanUpdateMachine>(),
        Case::for_hook::<CanUpdateMachineSet>(),
        Case::for_hook::<DiscoverVariables>(),
        Case::for_hook::<Discovery>(),
        Case::for_hook::<GeneratePatches>(),
        Case::for_hook::<GenerateUpgradePlan>(),
        Case::for_hook::<UpdateMachine>(),
        Case::for_hook::<ValidateTopology>(),
    ]
}

fn examples() -> Map<String, Value> {
    serde_json::from_str(include_str!("../../tests/cluster-api-examples.json")).unwrap()
}

/// Removes `kind` and `apiVersion`, which our types do not have.
fn without_type(body: &Value) -> Value {
    let mut fields = body.as_object().unwrap().clone();
    fields.retain(|field, _| field != "kind" && field != "apiVersion");
    fields.into()
}

#[test]
fn the_catalog_has_all_hooks_of_cluster_api() {
    let of_go: BTreeSet<_> = examples().keys().cloned().collect();
    let ours: BTreeSet<_> = cases().iter().map(|case| case.name.to_owned()).collect();
    let catalog = Catalog::cluster_api();
    let defined: BTreeSet<_> = catalog
        .hooks()
        .map(|hook| hook.reference().hook.clone())
        .collect();
    assert_eq!(of_go.len(), 17);
    assert_eq!(ours, of_go);
    assert_eq!(defined, of_go);
}

#[test]
fn json_of_go_round_trips() {
    let (catalog, examples) = (Catalog::cluster_api(), examples());
    for case in cases() {
        let (name, example) = (case.name, &examples[case.name]);
        let hook = catalog.named(name).next().unwrap();
        for which in ["full", "empty"] {
            let request = &example[format!("{which}Request")];
            hook.check_request(request).unwrap();
            assert_eq!(
                (case.request)(request),
                without_type(request),
                "{which} request of {name}"
            );
            let response = &example[format!("{which}Response")];
            hook.check_response(response).unwrap();
            assert_eq!(
                (case.response)(response),
                without_type(response),
                "{which} response of {name}"
            );
        }
        let typed = hook.typed_request(without_type(&example["fullRequest"]).as_object().unwrap().clone());
        assert_eq!(
            Value::Object(typed),
            example["fullRequest"],
            "typed request of {name}"
        );
        assert_eq!(
            hook.has_settings(),
            example["fullRequest"].get("settings").is_some(),
            "{name}"
        );
    }
}

#[test]
fn a_default_response_is_a_success() {
    for case in cases() {
        let response = (case.default_response)();
        let retry = json!({"status": "Success", "retryAfterSeconds": 0});
        let expected = match response.get("retryAfterSeconds") {
            Some(_) => retry,
            None => json!({"status": "Success"}),
        };
        assert_eq!(response, expected, "{}", case.name);
    }
}

#[test]
fn a_response_without_a_status_is_not_a_success() {
    for case in cases() {
        for body in [json!({}), json!({"status": null}), json!({"status": ""})] {
            let status = (case.outcome)(&body).status;
            assert_eq!(status, ResponseStatus::unset(), "{}: {body}", case.name);
        }
    }
}

#[test]
fn an_outcome_is_stored_in_existing_fields() {
    let blocking = examples().into_iter().filter_map(|(name, example)| {
        let blocks = example["fullResponse"].get("retryAfterSeconds").is_some();
        blocks.then_some(name)
    });
    let blocking: BTreeSet<_> = blocking.collect();
    for case in cases() {
        let outcome = HookOutcome {
            status: ResponseStatus::Failure,
            message: "not now".into(),
            retry_after_seconds: 5,
        };
        let (kept, written) = (case.with_outcome)(outcome.clone());
        let retry_after_seconds = if blocking.contains(case.name) { 5 } else { 0 };
        let expected = HookOutcome {
            retry_after_seconds,
            ..outcome
        };
        assert_eq!(kept, expected, "{}", case.name);
        assert_eq!((case.outcome)(&written), expected, "{}", case.name);
    }
}

#[test]
fn embedded_objects_round_trip_in_any_version() {
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v9", "kind": "Cluster", "metadata": {"name": "a", "namespace": "b", "new": null},
        "spec": {"Paused": [1, 2.5, {}], "paused": "yes"}, "more": 18_446_744_073_709_551_615_u64,
    });
    let request: BeforeClusterCreateRequest = read(&json!({"Cluster": cluster, "unknown": 1}));
    assert_eq!(
        (request.cluster.namespace(), request.cluster.name()),
        (Some("b"), Some("a"))
    );
    assert_eq!(
        serde_json::to_value(request).unwrap(),
        json!({"cluster": cluster})
    );
    let variable = json!({"name": "size", "schema": {"openAPIV9Schema": {"type": "integer"}}});
    let response: DiscoverVariablesResponse = read(&json!({"status": "Success", "variables": [variable]}));
    assert_eq!(
        serde_json::to_value(response).unwrap()["variables"],
        json!([variable])
    );
    for value in [json!(null), json!("text"), json!(1.5), json!([{"A": null}])] {
        let variable: Variable = read(&json!({"name": "any", "value": value}));
        assert_eq!(variable.value, value);
    }
}

/// JSON with field names that are mostly those of hooks, in any case.
fn body() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "Success|JSONPatch|e30=|\\PC{0,8}".prop_map(Value::from),
    ];
    let field = "status|STATUS|message|retryAfterSeconds|settings|Cluster|items|variables|handlers|requestHook|patch|\
                 patchType|machinePatch|current|desired|machine|object|uid|holderReference|controlPlaneUpgrades|version|\
                 kind|apiVersion|name|value|timeoutSeconds|\\PC{0,4}";
    scalar.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(field, inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_decoded_or_rejected(body in body()) {
        for hook in Catalog::cluster_api().hooks() {
            let _ = hook.check_request(&body);
            let _ = hook.check_response(&body);
        }
    }

    #[test]
    fn any_bytes_are_decoded_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = go_json::read::<GeneratePatchesRequest>(&bytes);
        let _ = go_json::read::<DiscoveryResponse>(&bytes);
    }

    #[test]
    fn decoding_is_idempotent(body in body()) {
        let written = |body: &Value| {
            let request = go_json::read_value::<GeneratePatchesRequest>(body.clone()).ok()?;
            serde_json::to_value(request).ok()
        };
        if let Some(once) = written(&body) {
            prop_assert_eq!(written(&once), Some(once));
        }
    }
}
