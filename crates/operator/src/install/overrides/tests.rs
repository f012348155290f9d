//! What policies make of objects of an install, and what they may not.

use std::collections::BTreeMap;

use policy::{CompiledPolicy, Engines, PolicySet};
use serde_json::{Value, json};
use windlass_bundle::render::{Rendered, WebhookCertificate};

use super::{ObjectOverride, OverrideDecision, apply, decide, namespace_as_seen};

const NAMESPACE: &str = "sample-system";

fn rendered() -> Rendered {
    let of = |api_version: &str, kind: &str, rest: Value| {
        let mut object = json!({
            "apiVersion": api_version, "kind": kind, "metadata": {"name": "sample", "namespace": NAMESPACE},
        });
        for (name, value) in rest.as_object().unwrap() {
            object[name] = value.clone();
        }
        object
    };
    let deployment = of(
        "apps/v1",
        "Deployment",
        json!({"spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "sample"}},
            "template": {
                "metadata": {"labels": {"app": "sample", "tier": "a"}, "annotations": {"windlass.dev/x": "y"}},
                "spec": {
                    "containers": [
                        {"name": "manager", "image": "quay.io/sample:v1", "volumeMounts": [{"name": "cert", "mountPath": "/c"}]},
                        {"name": "proxy", "image": "quay.io/proxy:v1"},
                    ],
                    "volumes": [{"name": "cert", "secret": {"secretName": "sample-cert"}}, {"name": "tmp", "emptyDir": {}}],
                },
            },
        }}),
    );
    Rendered {
        namespace: NAMESPACE.to_owned(),
        objects: vec![
            deployment,
            of(
                "v1",
                "Service",
                json!({"spec": {"selector": {"tier": "a"}, "ports": [{"port": 443}]}}),
            ),
            of("v1", "ConfigMap", json!({"data": {"a": "b"}})),
            of("rbac.authorization.k8s.io/v1", "Role", json!({"rules": []})),
            of(
                "windlass.dev/v1alpha1",
                "ServingCertificate",
                json!({"spec": {"secretName": "sample-cert"}}),
            ),
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "w"}, "spec": {}}),
        ],
        callers: vec![
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}),
        ],
        conversions: vec![],
        self_managed: None,
        certificates: vec![WebhookCertificate {
            service: "sample".to_owned(),
            green: "sample-green".to_owned(),
            secret: "sample-cert".to_owned(),
            deployment: "sample".to_owned(),
        }],
        operator_condition: vec![],
        notices: vec![],
    }
}

fn policy(name: &str, spec: Value) -> CompiledPolicy {
    let policy = json!({
        "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": "ClusterOverridePolicy", "metadata": {"name": name}, "spec": spec,
    });
    CompiledPolicy::compile(&policy, &Engines::built_in()).unwrap()
}

fn selector(api_version: &str, kind: &str) -> Value {
    json!([{"apiVersion": api_version, "kind": kind}])
}

fn mirror() -> Value {
    let image = json!({
        "op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "mirror.local/sample:v1",
    });
    json!({
        "resourceSelectors": selector("apps/v1", "Deployment"),
        "overrideRules": [{"overriders": {"plaintext": [image]}}],
    })
}

fn decided(specs: impl IntoIterator<Item = Value>) -> Result<OverrideDecision, Vec<String>> {
    let policies = specs
        .into_iter()
        .enumerate()
        .map(|(index, spec)| policy(&format!("p{index}"), spec).into());
    let rendered = rendered();
    let namespaces = BTreeMap::from([(NAMESPACE.to_owned(), namespace_as_seen(NAMESPACE, None))]);
    decide(&rendered, &PolicySet::new(policies), &namespaces)
        .map_err(|refusals| refusals.iter().map(ToString::to_string).collect())
}

#[test]
fn a_mirror_is_recorded_and_applied_and_the_same_however_often_it_is_asked() {
    let decision = decided([mirror()]).unwrap();
    assert_eq!(decided([mirror()]).unwrap(), decision);
    assert_eq!(
        decision.notices,
        ["ClusterOverridePolicy p0 overrides Deployment sample-system/sample"]
    );
    let recorded = serde_json::to_value(&decision.overrides).unwrap();
    assert_eq!(
        recorded,
        json!([{
            "apiVersion": "apps/v1", "kind": "Deployment", "namespace": NAMESPACE, "name": "sample",
            "patch": [
                {"op": "test", "path": "/spec/template/spec/containers/0/image", "value": "quay.io/sample:v1"},
                {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "mirror.local/sample:v1"},
            ],
        }])
    );
    let read: Vec<ObjectOverride> = serde_json::from_value(recorded).unwrap();
    assert_eq!(read, decision.overrides);
    let mut objects = rendered().objects;
    apply(&mut objects, &read).unwrap();
    assert_eq!(
        objects[0]["spec"]["template"]["spec"]["containers"][0]["image"],
        "mirror.local/sample:v1"
    );

    // A release that renders something else does not get an image in another place.
    let mut other = rendered().objects;
    other[0]["spec"]["template"]["spec"]["containers"]
        .as_array_mut()
        .unwrap()
        .reverse();
    let error = apply(&mut other, &read).unwrap_err();
    assert!(
        error.to_string().contains("Deployment sample does not match"),
        "{error}"
    );
    assert!(apply(&mut other[1..], &read).is_err(), "it is gone");
}

#[test]
fn an_install_asks_as_if_objects_were_created_whatever_is_there() {
    let mut create = mirror();
    create["overrideRules"][0]["targetOperations"] = json!(["CREATE"]);
    assert_eq!(decided([create]).unwrap().overrides.len(), 1);
    let mut update = mirror();
    update["overrideRules"][0]["targetOperations"] = json!(["UPDATE"]);
    assert_eq!(decided([update]).unwrap(), OverrideDecision::default());
}

#[test]
fn a_namespace_that_is_to_be_created_is_selected_by_its_name() {
    let mut selected = mirror();
    selected["namespaceSelector"] = json!({"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}});
    assert_eq!(decided([selected.clone()]).unwrap().overrides.len(), 1);
    selected["namespaceSelector"] = json!({"matchLabels": {"team": "a"}});
    assert_eq!(decided([selected]).unwrap().overrides, []);
}

#[test]
fn what_windlass_needs_is_not_overridden_and_the_policy_is_named() {
    let deployment = ("apps/v1", "Deployment");
    let service = ("v1", "Service");
    let pod = "/spec/template/spec";
    for ((api_version, kind), operation, field) in [
        (
            deployment,
            json!({"op": "replace", "path": "/metadata/name", "value": "x"}),
            "metadata.name",
        ),
        (
            deployment,
            json!({"op": "replace", "path": "/metadata/namespace", "value": "x"}),
            "metadata.namespace",
        ),
        (
            deployment,
            json!({"op": "replace", "path": "/kind", "value": "StatefulSet"}),
            "kind",
        ),
        (
            deployment,
            json!({"op": "add", "path": "/metadata/uid", "value": "u"}),
            "metadata.uid",
        ),
        (
            deployment,
            json!({"op": "add", "path": "/metadata/finalizers", "value": ["a/b"]}),
            "metadata.finalizers",
        ),
        (
            deployment,
            json!({"op": "add", "path": "/status", "value": {}}),
            "status",
        ),
        (
            deployment,
            json!({"op": "add", "path": "/metadata/labels/windlass.dev~1bundle-deployment", "value": "x"}),
            "metadata.labels[windlass.dev/bundle-deployment]",
        ),
        (
            deployment,
            json!({"op": "remove", "path": "/spec/template/metadata/annotations"}),
            "spec.template.metadata.annotations[windlass.dev/x]",
        ),
        (
            deployment,
            json!({"op": "remove", "path": format!("{pod}/volumes/0")}),
            "spec.template.spec.volumes",
        ),
        (
            deployment,
            json!({"op": "remove", "path": format!("{pod}/containers/1")}),
            "containers[proxy]",
        ),
        (
            deployment,
            json!({"op": "replace", "path": format!("{pod}/containers/0/volumeMounts/0/mountPath"), "value": "/d"}),
            "containers[manager].volumeMounts",
        ),
        (
            deployment,
            json!({"op": "replace", "path": "/spec/template/metadata/labels/tier", "value": "b"}),
            "spec.template.metadata.labels[tier]",
        ),
        (
            deployment,
            json!({"op": "replace", "path": "/spec/selector", "value": {}}),
            "spec.selector",
        ),
        (
            service,
            json!({"op": "replace", "path": "/spec/selector/tier", "value": "b"}),
            "spec.selector",
        ),
        (
            service,
            json!({"op": "replace", "path": "/spec/ports/0/port", "value": 80}),
            "spec.ports",
        ),
        (
            ("rbac.authorization.k8s.io/v1", "Role"),
            json!({"op": "add", "path": "/rules/-", "value": {"verbs": ["*"]}}),
            "rules",
        ),
        (
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
            json!({"op": "add", "path": "/spec/conversion", "value": {"strategy": "None"}}),
            "spec",
        ),
    ] {
        let spec = json!({
            "resourceSelectors": selector(api_version, kind),
            "overrideRules": [{"overriders": {"plaintext": [operation]}}],
        });
        let refused = decided([spec.clone()]).unwrap_err().join("; ");
        assert!(
            refused.starts_with(&format!("{kind} "))
                && refused.contains("ClusterOverridePolicy p0: rule 0: plaintext"),
            "{refused}"
        );
        assert!(
            refused.contains(field) && refused.contains("must not override"),
            "{field}: {refused}"
        );

        // Another policy goes on without it, before it or after it.
        let mut ignored = spec;
        ignored["failurePolicy"] = json!("Ignore");
        for specs in [[ignored.clone(), mirror()], [mirror(), ignored.clone()]] {
            let decision = decided(specs).unwrap();
            assert_eq!(
                decision.overrides,
                decided([mirror()]).unwrap().overrides,
                "{field}"
            );
            assert!(
                decision
                    .notices
                    .iter()
                    .any(|notice| notice.contains("that is ignored for")),
                "{:?}",
                decision.notices
            );
        }
    }
}

#[test]
fn windlass_kinds_and_callers_are_not_asked_about() {
    let everything = json!({
        "overrideRules": [{"overriders": {"plaintext": [{"op": "add", "path": "/metadata/labels/team", "value": "a"}]}}],
    });
    let decision = decided([everything]).unwrap();
    let kinds: Vec<_> = decision.overrides.iter().map(|change| &*change.kind).collect();
    assert_eq!(
        kinds,
        [
            "Deployment",
            "Service",
            "ConfigMap",
            "Role",
            "CustomResourceDefinition"
        ]
    );
}

#[test]
fn every_failure_is_told_and_one_that_may_be_ignored_leaves_nothing() {
    let refers = |failure_policy: &str| {
        json!({
            "failurePolicy": failure_policy,
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}, {"apiVersion": "v1", "kind": "ConfigMap"}],
            "overrideRules": [{"overriders": {
                "plaintext": [{"op": "add", "path": "/metadata/labels/team", "value": "a"}],
                "template": {
                    "type": "labels", "operation": "add", "path": "team",
                    "valueRef": {"from": "k8s", "path": "/data/team", "k8s": {
                        "apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "teams",
                    }},
                },
            }}],
        })
    };
    let refused = decided([refers("Fail")]).unwrap_err();
    assert_eq!(refused.len(), 2, "{refused:?}");
    for problem in &refused {
        assert!(problem.contains("ClusterOverridePolicy p0: rule 0"), "{problem}");
    }
    let ignored = decided([refers("Ignore")]).unwrap();
    assert_eq!(ignored.overrides, []);
    assert_eq!(ignored.notices.len(), 2, "{:?}", ignored.notices);
}
