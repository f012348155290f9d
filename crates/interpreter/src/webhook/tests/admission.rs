//! Validation of webhook configurations.

use super::*;

fn problems(webhooks: &[Value]) -> Vec<String> {
    match admit_webhooks(&configuration("c", webhooks), None) {
        Ok(()) => Vec::new(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

/// A webhook in which a field is set or removed.
fn webhook_with(pointer: &str, value: Value) -> Value {
    let mut webhook = webhook("a.example.com", "", &["Retain"], ["apps", "v1", "Deployment"]);
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = webhook.pointer_mut(parent).unwrap();
    match value {
        Value::Null => drop(parent.as_object_mut().unwrap().shift_remove(name)),
        value => parent[name] = value,
    }
    webhook
}

fn with_client_config(client_config: Value) -> Value {
    webhook_with("/clientConfig", client_config)
}

#[test]
fn configurations_that_karmada_accepts_are_accepted() {
    let pem = certificate();
    let service = json!({"namespace": "n", "name": "s"});
    for webhook in [
        webhook_with("/timeoutSeconds", json!(1)),
        webhook_with("/timeoutSeconds", json!(30)),
        webhook_with("/name", json!("a.b")),
        webhook_with("/rules", json!([])),
        webhook_with("/rules", Value::Null),
        webhook_with("/rules/0/operations", json!(["*"])),
        webhook_with(
            "/rules/0/operations",
            json!(["InterpretHealthy", "InterpretComponent"]),
        ),
        webhook_with("/rules/0/apiGroups", json!(["", "apps"])),
        webhook_with("/rules/0/kinds", json!(["*"])),
        webhook_with("/interpreterContextVersions", json!(["v2", "v1alpha1"])),
        webhook_with("/failurePolicy", json!("Ignore")),
        with_client_config(json!({"service": service})),
        with_client_config(
            json!({"service": {"namespace": "n", "name": "s", "port": 8443, "path": "/a/b.c/"}}),
        ),
        with_client_config(json!({"service": {"namespace": "n", "name": "s", "path": "/"}, "url": null})),
        with_client_config(json!({"service": service, "caBundle": base64(&pem)})),
        with_client_config(json!({"service": service, "caBundle": base64(format!("{pem}{pem}"))})),
        with_client_config(json!({"service": service, "caBundle": ""})),
        with_client_config(json!({"url": "https://[::1]:8443/a"})),
    ] {
        assert_eq!(problems(std::slice::from_ref(&webhook)), [""; 0], "{webhook}");
    }
    assert_eq!(problems(&[]), [""; 0]);
}

#[test]
fn configurations_that_karmada_rejects_are_rejected() {
    let many = json!(["*", "Retain"]);
    for (webhook, expected) in [
        (
            webhook_with("/name", json!("a")),
            "name: must be a DNS name of at least two labels, for example workloads.example.com",
        ),
        (
            webhook_with("/name", json!("A.example.com")),
            "name: must be a DNS name of at least two labels, for example workloads.example.com",
        ),
        (webhook_with("/name", Value::Null), "name: must not be empty"),
        (
            webhook_with("/timeoutSeconds", json!(0)),
            "timeoutSeconds: must be 1 to 30",
        ),
        (
            webhook_with("/timeoutSeconds", json!(31)),
            "timeoutSeconds: must be 1 to 30",
        ),
        (
            webhook_with("/timeoutSeconds", json!("10")),
            "timeoutSeconds: invalid type: string \"10\", expected i64",
        ),
        (
            webhook_with("/failurePolicy", json!("Maybe")),
            "failurePolicy: unknown variant `Maybe`, expected `Fail` or `Ignore`",
        ),
        (
            webhook_with("/rules/0/operations", json!([])),
            "rules[0].operations: must not be empty; use * for any",
        ),
        (
            webhook_with("/rules/0/operations", many),
            "rules[0].operations: must not have other items besides *",
        ),
        (
            webhook_with("/rules/0/operations", json!(["Prune"])),
            "rules[0].operations[0]: \"Prune\" is not an operation; use * or some of InterpretReplica, InterpretComponent, ReviseReplica, Retain, AggregateStatus, InterpretStatus, InterpretHealth, InterpretDependency",
        ),
        (
            webhook_with("/rules/0/apiGroups", json!([])),
            "rules[0].apiGroups: must not be empty; use * for any",
        ),
        (
            webhook_with("/rules/0/apiGroups", json!(["", "*"])),
            "rules[0].apiGroups: must not have other items besides *",
        ),
        (
            webhook_with("/rules/0/apiVersions", json!([""])),
            "rules[0].apiVersions[0]: must not be empty",
        ),
        (
            webhook_with("/rules/0/apiVersions", json!(["v1", "*"])),
            "rules[0].apiVersions: must not have other items besides *",
        ),
        (
            webhook_with("/rules/0/kinds", json!(["A", ""])),
            "rules[0].kinds[1]: must not be empty",
        ),
        (
            webhook_with("/rules/0/kinds", Value::Null),
            "rules[0].kinds: must not be empty; use * for any",
        ),
        (
            webhook_with("/interpreterContextVersions", json!([])),
            "interpreterContextVersions: must not be empty; use v1alpha1",
        ),
        (
            webhook_with("/interpreterContextVersions", json!(["v2"])),
            "interpreterContextVersions: must have v1alpha1, the only supported version",
        ),
        (
            webhook_with("/interpreterContextVersions", json!(["v1alpha1", "v1alpha1"])),
            "interpreterContextVersions[1]: duplicate \"v1alpha1\"",
        ),
        (
            webhook_with("/interpreterContextVersions", json!(["v1alpha1", "1"])),
            "interpreterContextVersions[1]: must be a DNS label that begins with a letter",
        ),
        (
            with_client_config(json!({})),
            "clientConfig: must have url or service",
        ),
        (
            with_client_config(json!({"url": "https://a", "service": {"namespace": "n", "name": "s"}})),
            "clientConfig: must not have both url and service",
        ),
        (
            with_client_config(json!({"url": "http://a"})),
            "clientConfig.url: \"http://a\" must begin with https://",
        ),
        (
            with_client_config(json!({"url": "https:///a"})),
            "clientConfig.url: \"https:///a\" is not a URL",
        ),
        (
            with_client_config(json!({"url": "https://u@a"})),
            "clientConfig.url: \"https://u@a\" must have no user, query or fragment",
        ),
        (
            with_client_config(json!({"url": "https://a?b"})),
            "clientConfig.url: \"https://a?b\" must have no user, query or fragment",
        ),
        (
            with_client_config(json!({"url": "https://a#b"})),
            "clientConfig.url: \"https://a#b\" must have no user, query or fragment",
        ),
        (
            with_client_config(json!({"service": {"namespace": "n", "name": ""}})),
            "clientConfig.service.name: must not be empty",
        ),
        (
            with_client_config(json!({"service": {"namespace": "n/m", "name": "s"}})),
            "clientConfig.service.namespace: must be a DNS label",
        ),
        (
            with_client_config(json!({"service": {"namespace": "n", "name": "s", "port": 65_536}})),
            "clientConfig.service.port: must be 1 to 65535",
        ),
        (
            with_client_config(json!({"service": {"namespace": "n", "name": "s", "path": "a"}})),
            "clientConfig.service.path: must begin with /",
        ),
        (
            with_client_config(json!({"service": {"namespace": "n", "name": "s", "path": "/a//b"}})),
            "clientConfig.service.path: segment 2 must not be empty",
        ),
        (
            with_client_config(json!({"service": {"namespace": "n", "name": "s", "path": "/a_b"}})),
            "clientConfig.service.path: segment \"a_b\" must be a DNS name",
        ),
        (
            with_client_config(json!({"url": "https://a", "caBundle": "{{caBundle}}"})),
            "clientConfig.caBundle: must be base64",
        ),
        (
            with_client_config(json!({"url": "https://a", "caBundle": base64("{{caBundle}}")})),
            "clientConfig.caBundle: must have at least one PEM certificate",
        ),
    ] {
        assert_eq!(problems(&[webhook]), [format!("webhooks[0].{expected}")]);
    }
}

#[test]
fn all_problems_are_reported() {
    let mut broken = webhook_with("/rules/0/kinds", json!([""]));
    broken["clientConfig"] = json!({"service": {"port": 0}, "caBundle": "!"});
    broken["timeoutSeconds"] = 99.into();
    let webhooks = [
        webhook_with("/timeoutSeconds", json!(5)),
        broken,
        json!("webhook"),
        webhook_with("/timeoutSeconds", json!([])),
    ];
    let problems = problems(&webhooks);
    assert_eq!(
        problems,
        [
            "webhooks[1].timeoutSeconds: must be 1 to 30",
            "webhooks[1].rules[0].kinds[0]: must not be empty",
            "webhooks[1].clientConfig.caBundle: must be base64",
            "webhooks[1].clientConfig.service.namespace: must not be empty",
            "webhooks[1].clientConfig.service.name: must not be empty",
            "webhooks[1].clientConfig.service.port: must be 1 to 65535",
            "webhooks[1].name: duplicate \"a.example.com\"",
            "webhooks[2]: invalid type: string \"webhook\", expected struct ResourceInterpreterWebhook",
            "webhooks[3].timeoutSeconds: invalid type: sequence, expected i64",
            "webhooks[3].name: duplicate \"a.example.com\"",
        ]
    );
}

#[test]
fn another_kind_is_rejected_and_an_unchanged_object_is_not() {
    let mut object = configuration("", &[]);
    object["kind"] = "Other".into();
    let problems = admit_webhooks(&object, None).unwrap_err();
    let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "kind: must be ResourceInterpreterWebhookConfiguration of config.karmada.io/v1alpha1",
            "metadata.name: must not be empty",
        ]
    );
    let old = configuration("c", &[json!({})]);
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(admit_webhooks(&new, Some(&old)), Ok(()));
    assert!(admit_webhooks(&new, None).is_err());
    new["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    assert_eq!(admit_webhooks(&new, None), Ok(()));
}
