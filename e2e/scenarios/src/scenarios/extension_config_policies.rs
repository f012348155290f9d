//! Admission policies for ExtensionConfigs: the refusals and defaults of Cluster API's webhook.

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

/// Of webhooks that do what the policies do.
const WEBHOOKS: &str = "capi-webhooks";

/// What nobody could call.
const BAD: &str = "bad.name";

pub(super) async fn extension_configs_that_nobody_could_call_are_refused(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    // It writes what it discovers, and is refused as anybody is.
    let _operator = cluster.operator.start()?;
    discovery::define(cluster).await?;
    let policies = manifests::extension_config_policy_objects();
    apply(cluster, &policies).await?;
    // Policies are enforced some time after they are there.
    are_enforced(cluster, true).await?;
    are_filled_in(cluster, true).await?;
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
    remove(cluster, &policies).await
}

pub(super) async fn policies_of_extension_configs_are_off_while_webhooks_do_the_same(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    discovery::define(cluster).await?;
    let policies = manifests::extension_config_policy_objects();
    apply(cluster, &policies).await?;
    are_enforced(cluster, true).await?;
    let operator = cluster.operator.start()?;

    let webhooks = [MUTATING, VALIDATING].map(|path| (path, webhooks(path == MUTATING)));
    for (path, configuration) in &webhooks {
        succeed(client, "POST", path, Some(configuration)).await?;
    }
    are_enforced(cluster, false).await?;
    are_filled_in(cluster, false).await?;

    // Whoever applies the file again does not turn them on.
    for policy in &policies {
        let applied = request::apply(client, &path(policy)?, "admin", true, policy).await?;
        anyhow::ensure!(is_taken(&applied), "{applied}");
    }
    are_enforced(cluster, false).await?;

    // What comes and goes while nobody looks is seen all the same.
    operator.stop().await?;
    let (path, configuration) = &webhooks[1];
    delete(client, &format!("{path}/{WEBHOOKS}")).await?;
    let _operator = cluster.operator.start()?;
    are_enforced(cluster, true).await?;
    are_filled_in(cluster, false).await?;
    delete(client, &format!("{}/{WEBHOOKS}", webhooks[0].0)).await?;
    are_filled_in(cluster, true).await?;

    succeed(client, "POST", path, Some(configuration)).await?;
    are_enforced(cluster, false).await?;
    delete(client, &format!("{path}/{WEBHOOKS}")).await?;
    are_enforced(cluster, true).await?;
    remove(cluster, &policies).await
}

/// Waits until an ExtensionConfig that nobody could call is refused, or taken. An API server that does not know the kind yet does
/// neither.
async fn are_enforced(cluster: &TestCluster, is_on: bool) -> anyhow::Result<()> {
    let client = &cluster.client;
    until(&format!("refusals are on: {is_on}"), PATIENCE, async || {
        let answer = send(client, "POST", EXTENSION_CONFIGS, Some(&config(BAD, json!({})))).await?;
        if is_taken(&answer) {
            delete(client, &format!("{EXTENSION_CONFIGS}/{BAD}")).await?;
        }
        let is_as_expected = if is_on {
            answer.code == 422
        } else {
            is_taken(&answer)
        };
        Ok(check(is_as_expected, || answer.to_string()))
    })
    .await
}

/// Waits until the port of a Service is filled in, or is not.
async fn are_filled_in(cluster: &TestCluster, is_on: bool) -> anyhow::Result<()> {
    let client = &cluster.client;
    let bare = json!({"clientConfig": {"service": {"namespace": "n", "name": "s"}}});
    until(&format!("defaults are on: {is_on}"), PATIENCE, async || {
        let answer = send(
            client,
            "POST",
            EXTENSION_CONFIGS,
            Some(&config("bare", bare.clone())),
        )
        .await?;
        if is_taken(&answer) {
            delete(client, &format!("{EXTENSION_CONFIGS}/bare")).await?;
        }
        let is_filled_in = answer.body["spec"]["clientConfig"]["service"]["port"] == 443;
        Ok(check(is_taken(&answer) && is_filled_in == is_on, || {
            answer.to_string()
        }))
    })
    .await
}

/// Webhooks that are asked about ExtensionConfigs, but never say anything: those that they would be asked about have a label that none
/// has.
fn webhooks(are_mutating: bool) -> Value {
    let kind = match are_mutating {
        true => "MutatingWebhookConfiguration",
        false => "ValidatingWebhookConfiguration",
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": WEBHOOKS},
        "webhooks": [{
            "name": "extensionconfig.runtime.cluster.x-k8s.io",
            "clientConfig": {"service": {"namespace": "capi-system", "name": "capi-webhook-service"}},
            "rules": [{
                "apiGroups": ["runtime.cluster.x-k8s.io"], "apiVersions": ["v1beta2"],
                "resources": ["extensionconfigs"], "operations": ["CREATE", "UPDATE"],
            }],
            "objectSelector": {"matchLabels": {"nobody": "has-this"}},
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

fn is_taken(answer: &RequestAnswer) -> bool {
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

/// Where objects of this kind are.
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
