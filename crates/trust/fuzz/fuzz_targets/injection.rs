//! For any target: an injection changes only its CA bundles, the target then has the trust bundle, another
//! trust bundle can replace it, and a withdrawal removes what was injected.

#![no_main]

use std::sync::{Arc, LazyLock};

use base64::{Engine, engine::general_purpose::STANDARD};
use libfuzzer_sys::{arbitrary, fuzz_target};
use serde_json::{Map, Value, json};
use windlass_object::{ca_injectors::CaInjector, names};
use windlass_trust::{
    injection::{
        BundleReader, CaBundlePlace, CaRequests, Encoding, Holder, Injection, InjectionScope, TargetKind,
        TargetKinds, differs_in_trust_only, has_injected_bundle, last_injector, last_writer, release,
        relevant_fields, withdrawal,
    },
    pki::DnsNames,
    trust_bundle::TrustBundle,
};

/// A target, and edits that make it differ from its API.
#[derive(arbitrary::Arbitrary, Debug)]
struct Input<'a> {
    target: TargetBase<'a>,
    edits: Vec<(u16, Edit<'a>)>,
    is_standing_in: bool,
    is_of_service: bool,
    is_asked: bool,
}

#[derive(arbitrary::Arbitrary, Debug)]
enum TargetBase<'a> {
    Definition,
    Webhooks,
    ApiService,
    ExtensionConfig,
    ConfigMap,
    Added,
    Text(&'a str),
}

/// An edit of one value of a target.
#[derive(arbitrary::Arbitrary, Debug)]
enum Edit<'a> {
    Remove,
    Repeat,
    Put(Replacement<'a>),
    Add(Name<'a>, Replacement<'a>),
}

/// Usually one of few relevant names.
#[derive(arbitrary::Arbitrary, Debug)]
enum Name<'a> {
    CaBundle,
    ClientConfig,
    Service,
    Url,
    Named,
    Namespace,
    Skipping,
    ConfigMapKey,
    Annotations,
    Labels,
    Injected,
    InjectFrom,
    InjectFromSecret,
    InjectFromOne,
    CertManager,
    ClusterApi,
    Other(&'a str),
}

#[derive(arbitrary::Arbitrary, Debug)]
enum Replacement<'a> {
    Null,
    True,
    Number(i64),
    Nothing,
    Empty,
    Items,
    Service,
    Source,
    Trust,
    TrustInText,
    OtherTrust,
    OtherTrustInText,
    Url(&'a str),
    Text(&'a str),
    Json(&'a str),
}

static TRUST: LazyLock<[TrustBundle; 2]> = LazyLock::new(|| {
    let [first, second] = [&include_bytes!("ca-1.pem")[..], &include_bytes!("ca-2.pem")[..]];
    [first.to_vec(), [second, first].concat()]
        .map(|pem| TrustBundle::from_pem(&pem).expect("it is a trust bundle"))
});

/// A kind by field paths, as users add them.
const ADDED: &str = "Gateway";

impl TargetBase<'_> {
    fn object(&self) -> Value {
        let service = json!({"namespace": "system", "name": "hook", "port": 443});
        let called = json!({"service": service});
        let (api_version, kind, rest) = match self {
            Self::Definition => (
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                json!({"spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": called}}}}),
            ),
            Self::Webhooks => (
                "admissionregistration.k8s.io/v1",
                "ValidatingWebhookConfiguration",
                json!({"webhooks": [{"name": "a.example.com", "clientConfig": called}, {"name": "b.example.com", "clientConfig": called}]}),
            ),
            Self::ApiService => ("apiregistration.k8s.io/v1", "APIService", json!({"spec": called})),
            Self::ExtensionConfig => (
                "runtime.cluster.x-k8s.io/v1alpha1",
                "ExtensionConfig",
                json!({"spec": {"clientConfig": {"url": "https://hook.system.svc:8443/hooks"}}}),
            ),
            Self::ConfigMap => ("v1", "ConfigMap", json!({"data": {"other": "text"}})),
            Self::Added => (
                "example.com/v1",
                ADDED,
                json!({"spec": {"listeners": [{"name": "a", "tls": {}}, {"tls": {}}]}}),
            ),
            Self::Text(text) => return serde_json::from_str(text).unwrap_or_default(),
        };
        let mut object = json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {"name": "target", "resourceVersion": "1", "annotations": {names::INJECTED: "true"}, "managedFields": [
                {"manager": names::INJECT, "operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsV1": {
                    "f:spec": {"f:caBundle": {}, "f:clientConfig": {"f:caBundle": {}},
                        "f:conversion": {"f:webhook": {"f:clientConfig": {"f:caBundle": {}}}}},
                    "f:data": {"f:ca-bundle.crt": {}},
                    "f:webhooks": {"k:{\"name\":\"a.example.com\"}": {"f:clientConfig": {"f:caBundle": {}}}},
                }},
                {"manager": "argocd", "operation": "Apply", "time": "2026-01-01T00:00:01Z", "fieldsV1": {"f:spec": {"f:conversion": {}}}},
            ]},
        });
        let (Value::Object(fields), Value::Object(rest)) = (&mut object, rest) else {
            unreachable!("both are objects")
        };
        fields.extend(rest);
        object
    }
}

impl Name<'_> {
    fn text(&self) -> &str {
        match self {
            Self::CaBundle => "caBundle",
            Self::ClientConfig => "clientConfig",
            Self::Service => "service",
            Self::Url => "url",
            Self::Named => "name",
            Self::Namespace => "namespace",
            Self::Skipping => "insecureSkipTLSVerify",
            Self::ConfigMapKey => "ca-bundle.crt",
            Self::Annotations => "annotations",
            Self::Labels => "labels",
            Self::Injected => names::INJECTED,
            Self::InjectFrom => names::INJECT_CA_FROM,
            Self::InjectFromSecret => names::INJECT_CA_FROM_SECRET,
            Self::InjectFromOne => "windlass.dev/inject-ca-from.a.example.com",
            Self::CertManager => "cert-manager.io/inject-ca-from",
            Self::ClusterApi => "runtime.cluster.x-k8s.io/inject-ca-from-secret",
            Self::Other(name) => name,
        }
    }
}

impl Replacement<'_> {
    fn value(&self) -> Value {
        let [first, second] = &*TRUST;
        match self {
            Self::Null => Value::Null,
            Self::True => true.into(),
            Self::Number(number) => (*number).into(),
            Self::Nothing => "".into(),
            Self::Empty => json!({}),
            Self::Items => {
                json!([{"name": "a.example.com", "clientConfig": {"service": {"namespace": "system", "name": "hook"}}}, null])
            }
            Self::Service => json!({"namespace": "system", "name": "hook"}),
            Self::Source => "system/hook".into(),
            Self::Trust => STANDARD.encode(first.to_pem()).into(),
            Self::TrustInText => first.to_pem().into(),
            Self::OtherTrust => STANDARD.encode(second.to_pem()).into(),
            Self::OtherTrustInText => second.to_pem().into(),
            Self::Url(rest) => format!("https://{rest}").into(),
            Self::Text(text) => (*text).into(),
            Self::Json(text) => serde_json::from_str(text).unwrap_or_default(),
        }
    }
}

impl Edit<'_> {
    fn make(&self, target: &mut Value, place: u16) {
        let mut places = Vec::new();
        list_places(target, &mut String::new(), &mut places);
        let place = &places[usize::from(place) % places.len()];
        let (parent, own) = place.rsplit_once('/').unwrap_or_default();
        match self {
            Self::Put(replacement) => *target.pointer_mut(place).expect("it exists") = replacement.value(),
            Self::Add(name, replacement) => match target.pointer_mut(place).expect("it exists") {
                Value::Object(fields) => drop(fields.insert(name.text().to_owned(), replacement.value())),
                Value::Array(items) => items.push(replacement.value()),
                other => *other = replacement.value(),
            },
            Self::Remove if !place.is_empty() => match target.pointer_mut(parent).expect("it exists") {
                Value::Object(fields) => drop(fields.shift_remove(&unescaped(own))),
                Value::Array(items) => drop(items.remove(own.parse().expect("it is an index"))),
                _ => {}
            },
            Self::Repeat if !place.is_empty() => {
                let value = target.pointer(place).expect("it exists").clone();
                if let Value::Array(items) = target.pointer_mut(parent).expect("it exists") {
                    items.push(value);
                }
            }
            Self::Remove | Self::Repeat => {}
        }
    }
}

fn list_places(value: &Value, here: &mut String, places: &mut Vec<String>) {
    places.push(here.clone());
    let length = here.len();
    let mut below = |name: &str, value| {
        here.push('/');
        here.push_str(&name.replace('~', "~0").replace('/', "~1"));
        list_places(value, here, places);
        here.truncate(length);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| below(name, value)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(index, value)| below(&index.to_string(), value)),
        _ => {}
    }
}

fn unescaped(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

/// Lists the smallest parts in which two values differ.
fn list_changes(before: &Value, after: &Value, here: &str, changes: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let nothing = Map::new();
            let only = after.iter().filter(|(name, _)| !before.contains_key(*name));
            for (name, one) in before.iter().chain(only) {
                let below = format!("{here}/{name}");
                match (before.get(name), after.get(name)) {
                    (Some(one), Some(other)) => list_changes(one, other, &below, changes),
                    _ if one.is_object() => list_changes(&nothing.clone().into(), one, &below, changes),
                    _ => changes.push(below),
                }
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (index, (one, other)) in before.iter().zip(after).enumerate() {
                list_changes(one, other, &format!("{here}/{index}"), changes);
            }
        }
        _ if before == after => {}
        // A parent that was null is created with the field.
        (Value::Null, Value::Object(_)) => list_changes(&json!({}), after, here, changes),
        _ => changes.push(here.to_owned()),
    }
}

fn kinds(is_standing_in: bool) -> TargetKinds {
    let added = TargetKind {
        group: "example.com".into(),
        version: "v1".into(),
        older: &[],
        kind: ADDED.into(),
        plural: "gateways".into(),
        places: vec![
            CaBundlePlace::at("/spec/listeners/*/tls/caBundle", Encoding::Pem).expect("it is a path"),
            CaBundlePlace::at("/caBundle", Encoding::Base64).expect("it is a path"),
        ],
        only_if: None,
        dropped_as_a_whole: None,
        reader: BundleReader::Watch,
    };
    let answered = CaInjector::ALL.into_iter().filter(|_| is_standing_in).collect();
    TargetKinds::new([added]).with_replaced_injectors(answered)
}

/// Injects a trust bundle into the target and reports whether that changed it.
fn inject(injection: &Injection, trust: &TrustBundle, target: &mut Value, kinds: &TargetKinds) -> bool {
    let Ok(patch) = injection.plan(target) else {
        assert!(injection.is_needed(target).is_err());
        return false;
    };
    assert_eq!(injection.is_needed(target), Ok(patch.is_some()));
    let Some(patch) = patch else { return false };
    let before = target.clone();
    json_patch::patch(target, &patch).expect("the target is unchanged");
    let mut changes = Vec::new();
    list_changes(&before, target, "", &mut changes);
    let fields: Vec<_> = injection.holders(&before).map(|holder| holder.field()).collect();
    for change in &changes {
        assert!(fields.contains(change), "{change} is not one of {fields:?}");
        let written = target
            .pointer(change)
            .and_then(Value::as_str)
            .expect("it is a string");
        assert!(
            [trust.to_pem(), STANDARD.encode(trust.to_pem())].contains(&written.to_owned()),
            "{written}"
        );
    }
    assert!(!changes.is_empty(), "{patch:?} changes nothing");
    let is_there = |holder: Holder<'_>| before.pointer(&holder.pointer).is_some_and(Value::is_object);
    // Elsewhere the parent is created with the field.
    if injection.holders(&before).all(is_there) {
        assert!(differs_in_trust_only(&before, target, kinds), "{before} {target}");
    }
    assert_eq!(injection.plan(target), Ok(None));
    assert!(injection.holders(target).all(|holder| holder.carries(trust)));
    true
}

fuzz_target!(|input: Input<'_>| {
    let mut target = input.target.object();
    for (place, edit) in input.edits.iter().take(16) {
        edit.make(&mut target, *place);
    }
    let kinds = Arc::new(kinds(input.is_standing_in));
    let requests = CaRequests::from_object(&target, &kinds);
    if let Ok(requests) = &requests {
        assert_eq!(CaRequests::from_valid_annotations(&target, &kinds), *requests);
    }
    let mut scope = match (input.is_asked, &requests) {
        (true, Ok(requests)) => InjectionScope::requesting(requests.sets().into_iter().cloned()),
        _ => InjectionScope::everything(),
    };
    scope = scope.with_kinds(kinds.clone());
    if input.is_of_service {
        scope =
            scope.with_servers(DnsNames::for_service("hook", "system", &[]).expect("they are valid names"));
    }
    let [first, second] = &*TRUST;
    let injections = [first, second].map(|trust| Injection::new(trust.clone(), scope.clone()));
    let original = target.clone();
    inject(&injections[0], first, &mut target, &kinds);
    let carrying = target.clone();
    if inject(&injections[1], second, &mut target, &kinds) {
        assert!(inject(&injections[0], first, &mut target, &kinds));
        assert!(injections[0].has_same_bundles(&carrying, &target));
    }

    let _ = (
        last_writer(&original),
        last_injector(&original, &CaInjector::ALL.into()),
    );
    for entry in windlass_object::object::items(&original, "/metadata/managedFields") {
        let _ = relevant_fields(&original, entry, &kinds);
    }
    if let Some(patch) = release(&target, &kinds) {
        let before = target.clone();
        json_patch::patch(&mut target, &patch).expect("the target is unchanged");
        let mut changes = Vec::new();
        list_changes(&before, &target, "", &mut changes);
        assert!(
            changes.iter().all(|change| change.starts_with("/metadata/")),
            "{changes:?}"
        );
    }
    if let Some(patch) = withdrawal(&target, &kinds) {
        // On an API server every annotation is a string.
        assert!(has_injected_bundle(&target, &kinds) || is_marked(&target));
        let before = target.clone();
        json_patch::patch(&mut target, &patch).expect("the target is unchanged");
        assert!(!is_marked(&target));
        let holders = kinds
            .kind_of(&before)
            .map(|kind| kind.holders(&before))
            .unwrap_or_default();
        let removable: Vec<_> = holders.iter().map(|holder| holder.field()).collect();
        let mut changes = Vec::new();
        list_changes(&before, &target, "", &mut changes);
        for change in &changes {
            let is_mark = change.starts_with(&format!("/metadata/annotations/{}", names::INJECTED));
            assert!(
                is_mark || removable.contains(change),
                "{change} is not one of {removable:?}"
            );
        }
    }
});

fn is_marked(target: &Value) -> bool {
    let annotations = target.pointer("/metadata/annotations");
    annotations.and_then(|all| all.get(names::INJECTED)).is_some()
}
