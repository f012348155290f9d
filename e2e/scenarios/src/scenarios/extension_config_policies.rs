//! Admission policies for ExtensionConfigs: the refusals and defaults of Cluster API's webhook.

use anyhow::Context;
use serde_json::{Value, json};
use windlass::commands::manifests;

use super::discovery;
use crate::{
    request::{Answer, send},
    steps::{PATIENCE, check, delete, get, succeed, until},
    test_cluster::TestCluster,
};

const EXTENSION_CONFIGS: &str = "/apis/runtime.cluster.x-k8s.io/v1beta2/extensionconfigs";

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1";

pub(super) async fn extension_configs_that_nobody_could_call_are_refused(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    // It writes what it discovers, and is refused as anybody is.
    let _operator = cluster.operator.start()?;
    discovery::define(cluster).await?;
    let policies = manifests::policies_of_extension_configs();
    for policy in &policies {
        succeed(client, "POST", &collection(policy)?, Some(policy)).await?;
    }
    // Policies are enforced some time after they are there.
    until("policies are enforced", PATIENCE, async || {
        let answer = send(
            client,
            "POST",
            EXTENSION_CONFIGS,
            Some(&config("bad.name", json!({}))),
        )
        .await?;
        if is_taken(&answer) {
            delete(client, &format!("{EXTENSION_CONFIGS}/bad.name")).await?;
        }
        Ok(check(!is_taken(&answer), || {
            "an ExtensionConfig without a server is taken".to_owned()
        }))
    })
    .await?;

    for (name, spec, expected) in refusals() {
        let config = config(name, spec);
        let answer = send(client, "POST", EXTENSION_CONFIGS, Some(&config)).await?;
        let said = answer.body.to_string();
        anyhow::ensure!(
            !is_taken(&answer) && said.contains(expected),
            "{config} is not refused with {expected:?}: {said}"
        );
    }
    let service = || json!({"namespace": "n", "name": "s", "path": "/x", "port": 8443});
    for (name, spec) in [
        (
            "by-url",
            json!({"clientConfig": {"url": "https://example.com:8443/x"}}),
        ),
        ("by-service", json!({"clientConfig": {"service": service()}})),
        (
            "by-selector",
            json!({
                "clientConfig": {"service": service()},
                "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
            }),
        ),
    ] {
        succeed(client, "POST", EXTENSION_CONFIGS, Some(&config(name, spec))).await?;
    }
    let bare = config(
        "bare",
        json!({"clientConfig": {"service": {"namespace": "n", "name": "s"}}}),
    );
    succeed(client, "POST", EXTENSION_CONFIGS, Some(&bare)).await?;
    let filled = get(client, &format!("{EXTENSION_CONFIGS}/bare"))
        .await?
        .context("gone")?;
    anyhow::ensure!(
        filled["spec"]["namespaceSelector"] == json!({})
            && filled["spec"]["clientConfig"]["service"]["port"] == 443,
        "nothing is filled in: {filled}"
    );
    let wrong = json!({"spec": {"clientConfig": {"service": {"port": 90000}}}});
    let answer = send(
        client,
        "PATCH",
        &format!("{EXTENSION_CONFIGS}/bare"),
        Some(&wrong),
    )
    .await?;
    anyhow::ensure!(!is_taken(&answer), "an update is taken: {}", answer.body);
    for policy in &policies {
        let name = policy["metadata"]["name"].as_str().context("no name")?;
        delete(client, &format!("{}/{name}", collection(policy)?)).await?;
    }
    Ok(())
}

fn is_taken(answer: &Answer) -> bool {
    (200..300).contains(&answer.code)
}

/// What is refused, and what is said of it.
fn refusals() -> Vec<(&'static str, Value, &'static str)> {
    let service = |field: &str, value: Value| {
        let mut service = json!({"namespace": "n", "name": "s"});
        service[field] = value;
        json!({"clientConfig": {"service": service}})
    };
    let url = |url: &str| json!({"clientConfig": {"url": url}});
    let good = || json!({"url": "https://example.com"});
    let selector = |expression: Value| json!({"clientConfig": good(), "namespaceSelector": {"matchExpressions": [expression]}});
    let both =
        json!({"clientConfig": {"url": "https://example.com", "service": {"namespace": "n", "name": "s"}}});
    vec![
        (
            "bad.name",
            json!({"clientConfig": good()}),
            "metadata.name: must be a DNS label",
        ),
        (
            "none",
            json!({"clientConfig": {}}),
            "must have exactly one of url and service",
        ),
        ("both", both, "must have exactly one of url and service"),
        (
            "no-url",
            url("https//x"),
            "must be a URL that begins with https://",
        ),
        (
            "scheme",
            url("unknown://x"),
            "must be a URL that begins with https://",
        ),
        (
            "plain",
            url("http://example.com"),
            "must be a URL that begins with https://",
        ),
        (
            "user",
            url("https://a:b@example.com"),
            "must have no user, query or fragment",
        ),
        (
            "query",
            url("https://example.com/?a=b"),
            "must have no user, query or fragment",
        ),
        (
            "fragment",
            url("https://example.com/#a"),
            "must have no user, query or fragment",
        ),
        (
            "service-name",
            service("name", "NOT_ALLOWED".into()),
            "must be the name of a Service",
        ),
        (
            "no-service-name",
            service("name", "".into()),
            "must be the name of a Service",
        ),
        (
            "namespace",
            service("namespace", "INVALID".into()),
            "must be the name of a namespace",
        ),
        (
            "no-namespace",
            service("namespace", "".into()),
            "must be the name of a namespace",
        ),
        (
            "path",
            service("path", "https://example.com".into()),
            "must be a path that begins with /",
        ),
        ("port", service("port", 90000.into()), "must be 1 to 65535"),
        (
            "operator",
            selector(json!({"key": "a", "operator": "bad-operator"})),
            "operator must be In or NotIn",
        ),
        (
            "values",
            selector(json!({"key": "a", "operator": "In"})),
            "operator must be In or NotIn",
        ),
    ]
}

fn config(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig",
        "metadata": {"name": name}, "spec": spec,
    })
}

/// Where objects of a policy's kind are.
fn collection(policy: &Value) -> anyhow::Result<String> {
    let kind = policy["kind"].as_str().context("no kind")?.to_lowercase();
    let plural = match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{kind}s"),
    };
    Ok(format!("{POLICIES}/{plural}"))
}
