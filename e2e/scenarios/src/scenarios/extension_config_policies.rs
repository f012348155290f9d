//! Admission policies for ExtensionConfigs, with the validation and defaults of Cluster API's webhook.

use anyhow::Context;
use serde_json::{Value, json};
use windlass::commands::manifests;

use super::discovery;
use crate::{
    request::{self, RequestAnswer, send},
    steps::{MUTATING, PATIENCE, VALIDATING, check, delete, get, succeed, until},
    test_cluster::TestCluster,
};

const EXTENSION_CONFIGS: &str = "/apis/runtime.cluster.x-k8s.io/v1beta2/extensionconfigs";

/// The name of webhook configurations with the same purpose as the policies.
const WEBHOOK_CONFIGURATION: &str = "capi-webhooks";

/// An invalid name.
const INVALID_NAME: &str = "bad.name";

pub(super) async fn invalid_extension_configs_are_rejected(cluster: &TestCluster) -> anyhow::Result<()> {
    let client = &cluster.client;
    // The operator writes discovery results; the policies apply to it as to all clients.
    let _operator = cluster.operator.start()?;
    discovery::define(cluster).await?;
    let policies = manifests::extension_config_policy_objects();
    apply(cluster, &policies).await?;
    // A new policy is enforced after a delay.
    wait_for_validation(cluster, true).await?;
    wait_for_defaults(cluster, true).await?;
    for (name, spec, expected) in invalid_specs() {
        let config = config(name, spec);
        let answer = send(client, "POST", EXTENSION_CONFIGS, Some(&config)).await?;
        let said = answer.body.to_string();
        anyhow::ensure!(
            !is_accepted(&answer) && said.contains(expected),
            "{config} is not rejected with {expected:?}: {said}"
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
        .context("it does not exist")?;
    anyhow::ensure!(
        filled["spec"]["namespaceSelector"] == json!({})
            && filled["spec"]["clientConfig"]["service"]["port"] == 443,
        "the defaults are missing: {filled}"
    );
    let wrong = json!({"spec": {"clientConfig": {"service": {"port": 90000}}}});
    let answer = send(
        client,
        "PATCH",
        &format!("{EXTENSION_CONFIGS}/bare"),
        Some(&wrong),
    )
    .await?;
    anyhow::ensure!(
        !is_accepted(&answer),
        "an invalid update was accepted: {}",
        answer.body
    );
    remove(cluster, &policies).await
}

pub(super) async fn extension_config_policies_are_off_while_webhooks_validate(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    discovery::define(cluster).await?;
    let policies = manifests::extension_config_policy_objects();
    apply(cluster, &policies).await?;
    wait_for_validation(cluster, true).await?;
    let operator = cluster.operator.start()?;

    let webhooks = [MUTATING, VALIDATING].map(|path| (path, webhooks(path == MUTATING)));
    for (path, configuration) in &webhooks {
        succeed(client, "POST", path, Some(configuration)).await?;
    }
    wait_for_validation(cluster, false).await?;
    wait_for_defaults(cluster, false).await?;

    // Applying the file again does not enable the policies.
    for policy in &policies {
        let applied = request::apply(client, &path(policy)?, "admin", true, policy).await?;
        anyhow::ensure!(is_accepted(&applied), "{applied}");
    }
    wait_for_validation(cluster, false).await?;

    // Changes while no operator runs are handled at its start.
    operator.stop().await?;
    let (path, configuration) = &webhooks[1];
    delete(client, &format!("{path}/{WEBHOOK_CONFIGURATION}")).await?;
    let _operator = cluster.operator.start()?;
    wait_for_validation(cluster, true).await?;
    wait_for_defaults(cluster, false).await?;
    delete(client, &format!("{}/{WEBHOOK_CONFIGURATION}", webhooks[0].0)).await?;
    wait_for_defaults(cluster, true).await?;

    succeed(client, "POST", path, Some(configuration)).await?;
    wait_for_validation(cluster, false).await?;
    delete(client, &format!("{path}/{WEBHOOK_CONFIGURATION}")).await?;
    wait_for_validation(cluster, true).await?;
    remove(cluster, &policies).await
}

/// Waits until an invalid ExtensionConfig is rejected, or accepted. An API server that does not serve the
/// kind yet does neither.
async fn wait_for_validation(cluster: &TestCluster, is_on: bool) -> anyhow::Result<()> {
    let client = &cluster.client;
    until(
        &format!("invalid objects are rejected: {is_on}"),
        PATIENCE,
        async || {
            let answer = send(
                client,
                "POST",
                EXTENSION_CONFIGS,
                Some(&config(INVALID_NAME, json!({}))),
            )
            .await?;
            if is_accepted(&answer) {
                delete(client, &format!("{EXTENSION_CONFIGS}/{INVALID_NAME}")).await?;
            }
            let is_as_expected = if is_on {
                answer.code == 422
            } else {
                is_accepted(&answer)
            };
            Ok(check(is_as_expected, || answer.to_string()))
        },
    )
    .await
}

/// Waits until the port of a Service is set by default, or is not.
async fn wait_for_defaults(cluster: &TestCluster, is_on: bool) -> anyhow::Result<()> {
    let client = &cluster.client;
    let bare = json!({"clientConfig": {"service": {"namespace": "n", "name": "s"}}});
    until(&format!("the defaults are set: {is_on}"), PATIENCE, async || {
        let answer = send(
            client,
            "POST",
            EXTENSION_CONFIGS,
            Some(&config("bare", bare.clone())),
        )
        .await?;
        if is_accepted(&answer) {
            delete(client, &format!("{EXTENSION_CONFIGS}/bare")).await?;
        }
        let is_filled_in = answer.body["spec"]["clientConfig"]["service"]["port"] == 443;
        Ok(check(is_accepted(&answer) && is_filled_in == is_on, || {
            answer.to_string()
        }))
    })
    .await
}

/// Webhook configurations for ExtensionConfigs with an object selector that matches none.
fn webhooks(are_mutating: bool) -> Value {
    let kind = match are_mutating {
        true => "MutatingWebhookConfiguration",
        false => "ValidatingWebhookConfiguration",
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": WEBHOOK_CONFIGURATION},
        "webhooks": [{
            "name": "extensionconfig.runtime.cluster.x-k8s.io",
            "clientConfig": {"service": {"namespace": "capi-system", "name": "capi-webhook-service"}},
            "rules": [{
                "apiGroups": ["runtime.cluster.x-k8s.io"], "apiVersions": ["v1beta2"],
                "resources": ["extensionconfigs"], "operations": ["CREATE", "UPDATE"],
            }],
            "objectSelector": {"matchLabels": {"no-object": "has-this"}},
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }],
    })
}

async fn apply(cluster: &TestCluster, objects: &[Value]) -> anyhow::Result<()> {
    for object in objects {
        succeed(&cluster.client, "POST", &collection(object)?, Some(object)).await?;
    }
    Ok(())
}

async fn remove(cluster: &TestCluster, objects: &[Value]) -> anyhow::Result<()> {
    for object in objects {
        delete(&cluster.client, &path(object)?).await?;
    }
    Ok(())
}

fn is_accepted(answer: &RequestAnswer) -> bool {
    (200..300).contains(&answer.code)
}

/// Invalid specs with a name and the expected message.
fn invalid_specs() -> Vec<(&'static str, Value, &'static str)> {
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

/// Returns the path of the collection of this object.
fn collection(object: &Value) -> anyhow::Result<String> {
    let [version, kind] = ["apiVersion", "kind"].map(|field| object[field].as_str());
    let (version, kind) = version.zip(kind).context("no kind")?;
    let kind = kind.to_lowercase();
    let plural = match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{kind}s"),
    };
    Ok(format!("/apis/{version}/{plural}"))
}

fn path(object: &Value) -> anyhow::Result<String> {
    let name = object["metadata"]["name"].as_str().context("no name")?;
    Ok(format!("{}/{name}", collection(object)?))
}
