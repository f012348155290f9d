mod by_path;

use base64::{Engine, engine::general_purpose::STANDARD};
use json_patch::Patch;
use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_object::ca_injectors::{CaInjector, CaInjectors};

use super::{injection_plan::*, *};
use crate::{
    pki::{Certificate, sample},
    trust_bundle::TrustBundle,
};

const HOOK: &str = "hook.system.svc";

fn trust(generation: u32) -> TrustBundle {
    TrustBundle::new([sample::authority(generation).certificate().clone()]).unwrap()
}

fn service() -> Value {
    json!({"namespace": "system", "name": "hook", "port": 443})
}

/// One target of each kind without CA bundle, generated from the table, then handwritten ones; and where each
/// must get one.
fn targets() -> Vec<(Value, Vec<String>)> {
    let as_served = [
        (crd(), "/spec/conversion/webhook/clientConfig/caBundle"),
        (
            validating(),
            "/webhooks/0/clientConfig/caBundle /webhooks/1/clientConfig/caBundle",
        ),
        (api_service(), "/spec/caBundle"),
        (extension_config(), "/spec/clientConfig/caBundle"),
        (config_map(), "/data/ca-bundle.crt"),
    ];
    let as_served = as_served
        .into_iter()
        .map(|(target, fields)| (target, fields.split(' ').map(str::to_owned).collect()));
    KINDS.iter().map(target_of_kind).chain(as_served).collect()
}

fn target_of_kind(kind: &TargetKind) -> (Value, Vec<String>) {
    let mut target = json!({"apiVersion": kind.api_version(), "kind": kind.kind,
        "metadata": {"name": "target", "resourceVersion": "1"}});
    if let Some((field, value)) = kind.only_if {
        set(&mut target, field, value.into());
    }
    let mut fields = Vec::new();
    for place in &kind.places {
        let mut items = vec![String::new()];
        if let Some(list) = &place.list {
            set(
                &mut target,
                list,
                json!([{"name": "a.example.com"}, {"name": "b.example.com"}]),
            );
            items = vec![format!("{list}/0"), format!("{list}/1")];
        }
        for item in items {
            let holder = item + &place.holder;
            if place.surroundings == Surroundings::Server {
                set(&mut target, &format!("{holder}/service"), service());
            }
            fields.push(format!("{holder}/{}", place.field));
        }
    }
    (target, fields)
}

/// Returns the encoded trust bundle as `target` holds it.
fn encode_bundle(target: &Value, trust: &TrustBundle) -> String {
    encode_pem(target, &trust.to_pem())
}

fn encode_pem(target: &Value, pem: &str) -> String {
    match TargetKind::from_object(target).unwrap().places[0].encoding {
        Encoding::Base64 => STANDARD.encode(pem),
        Encoding::Pem => pem.to_owned(),
    }
}

/// Sets a value at a JSON pointer and creates missing parents.
fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    for name in pointer.split('/').skip(1) {
        place = match name.parse::<usize>() {
            Ok(index) => &mut place[index],
            Err(_) => &mut place[name],
        };
    }
    *place = value;
}

fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "target"},
        "spec": {"conversion": {"strategy": "Webhook", "webhook": {
            "clientConfig": {"service": service()}, "conversionReviewVersions": ["v1"],
        }}},
    })
}

fn validating() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "target"},
        "webhooks": [
            {"name": "a.example.com", "clientConfig": {"service": service()}},
            {"name": "b.example.com", "clientConfig": {"service": service()}},
        ],
    })
}

fn api_service() -> Value {
    json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "target"},
        "spec": {"group": "g", "version": "v1", "service": service()},
    })
}

fn config_map() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "target", "namespace": "n", "resourceVersion": "1"}, "data": {"other": "a"},
    })
}

/// Returns an ExtensionConfig in another version than the watched one.
fn extension_config() -> Value {
    json!({
        "apiVersion": "runtime.cluster.x-k8s.io/v1alpha1", "kind": "ExtensionConfig", "metadata": {"name": "target"},
        "spec": {"clientConfig": {"url": format!("https://{HOOK}:8443/hooks")}},
    })
}

fn plan(target: &Value, trust: &TrustBundle) -> Result<Option<Patch>, InjectionError> {
    let injection = Injection::new(
        trust.clone(),
        InjectionScope::everything().with_servers(sample::names()),
    );
    let planned = injection.plan(target);
    assert_eq!(
        injection.is_needed(target),
        planned.clone().map(|patch| patch.is_some())
    );
    planned
}

/// Returns the target after the injection.
fn inject(target: &Value, trust: &TrustBundle) -> Value {
    let Some(patch) = plan(target, trust).unwrap() else {
        panic!("nothing to inject into {target}");
    };
    let mut patched = target.clone();
    json_patch::patch(&mut patched, &patch).unwrap();
    patched
}

fn annotated(mut target: Value, annotation: &str, value: &str) -> Value {
    target["metadata"]["annotations"] = json!({ annotation: value });
    target
}

#[test]
fn injection_changes_only_the_ca_bundle_fields() {
    let trust = trust(1);
    for (target, fields) in targets() {
        let mut expected = target.clone();
        for field in &fields {
            set(&mut expected, field, encode_bundle(&target, &trust).into());
        }
        let patched = inject(&target, &trust);
        assert_eq!(patched, expected);
        assert_eq!(plan(&patched, &trust), Ok(None), "{}", target["kind"]);
    }
}

#[test]
fn a_missing_invalid_or_foreign_bundle_is_repaired() {
    let (ours, foreign) = (trust(1), trust(2));
    let reordered = ours.to_pem() + &foreign.to_pem();
    for (target, fields) in targets() {
        let encoded = |pem: &str| json!(encode_pem(&target, pem));
        let garbage = [
            json!(""),
            Value::Null,
            json!("Cg=="),
            json!("%%%"),
            json!(7),
            encoded("garbage"),
            encoded(&foreign.to_pem()),
            encoded(&reordered),
            encoded(&ours.to_pem()[..300]),
        ];
        let good = inject(&target, &ours);
        for value in &garbage {
            let mut broken = good.clone();
            set(&mut broken, &fields[0], value.clone());
            assert_eq!(inject(&broken, &ours), good, "{value} in {}", target["kind"]);
        }
    }
}

#[test]
fn only_the_entries_that_differ_are_in_the_patch() {
    let trust = trust(1);
    let mut target = inject(&validating(), &trust);
    target["webhooks"][1]["clientConfig"]["caBundle"] = json!("Cg==");
    let Some(Patch(operations)) = plan(&target, &trust).unwrap() else {
        panic!("nothing to inject");
    };
    assert_eq!(operations.len(), 3);
    for operation in &operations {
        assert!(operation.path().to_string().starts_with("/webhooks/1/"));
    }
}

#[test]
fn a_bundle_with_equal_certificates_is_not_rewritten() {
    let certificates = [trust(1), trust(2)].map(|trust| trust.certificates()[0].clone());
    let both = TrustBundle::new(certificates).unwrap();
    let reversed: String = both
        .certificates()
        .iter()
        .rev()
        .map(Certificate::to_pem)
        .collect();
    for (target, fields) in targets() {
        let mut target = inject(&target, &both);
        let written = format!("# ours\n{reversed}").replace('\n', "\r\n");
        let written = encode_pem(&target, &written);
        set(&mut target, &fields[0], written.into());
        assert_eq!(plan(&target, &both), Ok(None));
    }
}

#[test]
fn webhooks_of_other_servers_are_not_changed() {
    let trust = trust(1);
    let mut target = validating();
    target["webhooks"][0]["clientConfig"] = json!({"service": {"namespace": "system", "name": "other"}});
    target["webhooks"].as_array_mut().unwrap().push(json!({
        "name": "c", "clientConfig": {"url": "https://example.com/x"},
    }));
    let patched = inject(&target, &trust);
    for (index, injected) in [(0, false), (1, true), (2, false)] {
        let client_config = &patched["webhooks"][index]["clientConfig"];
        assert_eq!(client_config.get("caBundle").is_some(), injected, "{index}");
    }
    // A trust bundle from a Secret is for any server.
    let everything = Injection::new(trust, InjectionScope::everything());
    assert_eq!(everything.holders(&target).count(), 3);
}

#[test]
fn no_bundle_is_written_where_none_is_allowed() {
    let mut none = crd();
    none["spec"]["conversion"] = json!({"strategy": "None"});
    let mut leftover = crd();
    leftover["spec"]["conversion"]["strategy"] = json!("None");
    let mut api_services = api_service();
    api_services["spec"]["insecureSkipTLSVerify"] = json!(true);
    let mut local = api_service();
    local["spec"]["service"] = Value::Null;
    for target in [none, leftover, api_services, local] {
        assert_eq!(plan(&target, &trust(1)), Ok(None), "{target}");
    }
}

#[test]
fn a_concurrently_changed_target_is_not_written() {
    let trust = trust(1);
    let changes: [fn(&mut Value); 4] = [
        |target| target["webhooks"].as_array_mut().unwrap().swap(0, 1),
        |target| target["webhooks"][0]["clientConfig"]["caBundle"] = json!("Cg=="),
        |target| target["webhooks"][0]["clientConfig"]["service"]["name"] = json!("other"),
        |target| {
            target["webhooks"].as_array_mut().unwrap().remove(1);
        },
    ];
    let Some(patch) = plan(&validating(), &trust).unwrap() else {
        panic!("nothing to inject");
    };
    for change in changes {
        let mut changed = validating();
        change(&mut changed);
        let before = changed.clone();
        assert!(json_patch::patch(&mut changed, &patch).is_err());
        assert_eq!(changed, before);
    }

    let Some(patch) = plan(&crd(), &trust).unwrap() else {
        panic!("nothing to inject");
    };
    let mut switched = crd();
    switched["spec"]["conversion"]["strategy"] = json!("None");
    assert!(json_patch::patch(&mut switched, &patch).is_err());
}

#[test]
fn targets_of_other_injectors_are_rejected() {
    for (annotation, value, elsewhere) in [
        ("cert-manager.io/inject-ca-from", "ns/name", true),
        ("cert-manager.io/inject-ca-from-secret", "ns/name", true),
        ("cert-manager.io/inject-apiserver-ca", "true", true),
        ("service.beta.openshift.io/inject-cabundle", "true", true),
        ("service.beta.openshift.io/inject-cabundle", "false", false),
        ("runtime.cluster.x-k8s.io/inject-ca-from-secret", "ns/name", false),
        ("cert-manager.io/inject-ca-from", "", false),
        ("example.com/other", "true", false),
    ] {
        let planned = plan(&annotated(crd(), annotation, value), &trust(1));
        assert_eq!(
            matches!(planned, Err(InjectionError::ManagedElsewhere(_))),
            elsewhere,
            "{annotation}: {planned:?}"
        );
    }
    let error = plan(
        &annotated(crd(), "cert-manager.io/inject-ca-from", "a/b"),
        &trust(1),
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "cert-manager is also requested to inject the CA bundle: remove the annotation cert-manager.io/inject-ca-from or that of Windlass"
    );
}

#[test]
fn other_injectors_manage_only_their_own_groups() {
    for (target, annotation, elsewhere) in [
        (
            extension_config(),
            "runtime.cluster.x-k8s.io/inject-ca-from-secret",
            true,
        ),
        (extension_config(), "cert-manager.io/inject-ca-from-secret", false),
        (config_map(), "cert-manager.io/inject-ca-from-secret", false),
        (config_map(), "service.beta.openshift.io/inject-cabundle", true),
    ] {
        let target = annotated(target, annotation, "ns/name");
        let checked = ManagedElsewhere::check(&target, &TargetKinds::default());
        assert_eq!(checked.is_err(), elsewhere, "{target}");
    }
}

#[test]
fn a_replaced_injector_blocks_injection_only_while_it_runs() {
    let target = annotated(crd(), "cert-manager.io/inject-ca-from", "a/b");
    let answering =
        TargetKinds::default().with_replaced_injectors(CaInjectors::from([CaInjector::CertManager]));
    let beside = |injector| {
        answering
            .clone()
            .with_running_injectors(CaInjectors::from([injector]))
    };
    assert_eq!(ManagedElsewhere::check(&target, &answering), Ok(()));
    assert_eq!(
        ManagedElsewhere::check(&target, &beside(CaInjector::ServiceCa)),
        Ok(())
    );
    let error = ManagedElsewhere::check(&target, &beside(CaInjector::CertManager)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cert-manager is running and handles the annotation cert-manager.io/inject-ca-from itself: stop it, or remove the annotation"
    );
}

#[test]
fn unsupported_kinds_are_rejected() {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}});
    let error = plan(&secret, &trust(1)).unwrap_err();
    assert_eq!(error.to_string(), "Secret n/s: this kind has no caBundle field");
    assert!(plan(&json!(null), &trust(1)).is_err());
}

#[test]
fn holders_contain_what_clients_trust() {
    let (one, other) = (trust(1), trust(2));
    let definition = TargetKind::from_object(&crd()).unwrap();
    let target = inject(&crd(), &one);
    let holder = definition.holders(&target).remove(0);
    assert_eq!(holder.server, CalledServer::Host(HOOK.to_owned()));
    assert!(holder.carries(&one));
    assert!(!holder.carries(&other));
    let target = crd();
    let holder = definition.holders(&target).remove(0);
    assert_eq!(holder.ca_bundle(), CaBundle::Missing);
}

/// Generates any JSON, including the relevant field names.
fn any_json() -> impl Strategy<Value = Value> {
    let names = [
        "spec",
        "webhooks",
        "clientConfig",
        "caBundle",
        "ca-bundle.crt",
        "service",
        "name",
        "namespace",
        "url",
        "conversion",
        "webhook",
        "strategy",
        "metadata",
        "managedFields",
        "manager",
        "annotations",
    ];
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop_oneof![
            Just("Webhook"),
            Just("hook"),
            Just("system"),
            Just("Cg=="),
            Just("https://hook.system.svc")
        ]
        .prop_map(Value::from),
    ];
    scalar.prop_recursive(5, 40, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map(proptest::sample::select(names.to_vec()), inner, 0..5).prop_map(
                |fields| fields
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect()
            ),
        ]
    })
}

proptest! {
    #[test]
    fn planning_any_target_never_panics(spec in any_json(), webhooks in any_json(), data in any_json(), metadata in any_json(), index in 0..KINDS.len()) {
        static EVERYTHING: std::sync::LazyLock<Injection> = std::sync::LazyLock::new(|| Injection::new(trust(1), InjectionScope::everything()));
        let mut target = json!({
            "apiVersion": KINDS[index].api_version(), "kind": KINDS[index].kind,
            "metadata": metadata, "spec": spec, "webhooks": webhooks, "data": data,
        });
        if target["metadata"].is_object() {
            target["metadata"]["name"] = json!("target");
        }
        let kinds = TargetKinds::default().with_replaced_injectors(CaInjector::ALL.into());
        let _ = (CaRequests::from_object(&target, &kinds), CaRequests::from_valid_annotations(&target, &kinds));
        if let Ok(Some(patch)) = EVERYTHING.plan(&target) {
            json_patch::patch(&mut target, &patch).unwrap();
            prop_assert!(!matches!(EVERYTHING.plan(&target), Ok(Some(_))));
        }
        let _ = (release(&target, &kinds), withdrawal(&target, &kinds));
    }
}

#[test]
fn trust_only_changes_are_recognized() {
    let kinds = TargetKinds::default();
    for (before, fields) in targets() {
        let mut after = before.clone();
        after["metadata"]["generation"] = 2.into();
        after["metadata"]["resourceVersion"] = "2".into();
        after["metadata"]["managedFields"] = json!([{"manager": "m"}]);
        for field in &fields {
            set(&mut after, field, encode_bundle(&before, &trust(1)).into());
        }
        if before.get("data").is_none() && after.get("data").is_some() {
            // The parent is created with the CA bundle.
            continue;
        }
        assert!(differs_in_trust_only(&before, &after, &kinds), "{after}");
        assert!(differs_in_trust_only(&after, &before, &kinds), "{after}");
        let mut elsewhere = after.clone();
        let (holder, _) = fields[0].rsplit_once('/').unwrap();
        set(
            &mut elsewhere,
            &format!("{holder}/url"),
            "https://elsewhere".into(),
        );
        let mut labelled = after.clone();
        labelled["metadata"]["labels"] = json!({"a": "b"});
        for other in [elsewhere, labelled] {
            assert!(!differs_in_trust_only(&before, &other, &kinds), "{other}");
        }
    }
}
