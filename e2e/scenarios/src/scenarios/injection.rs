//! Targets of people who install no bundle.

use anyhow::Context;
use serde_json::{Value, json};

use crate::{
    request,
    steps::{CRDS, PATIENCE, check, get, serving_certificates, succeed, until},
    test_cluster::TestCluster,
};

/// Where the ServingCertificate is.
pub(super) const NAMESPACE: &str = "by-hand";

/// Who applies a definition.
const OWNER: &str = "an-owner";

/// Our field manager.
const INJECT: &str = "windlass-inject";

/// Creates a Service and a ServingCertificate for it, which no pod serves.
pub(super) async fn create_certificate(cluster: &TestCluster) -> anyhow::Result<()> {
    let client = &cluster.client;
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    succeed(client, "POST", "/api/v1/namespaces", Some(&namespace)).await?;
    let service = json!({"metadata": {"name": "hook"}, "spec": {"selector": {"app": "hook"}, "ports": [{"port": 443}]}});
    let services = format!("/api/v1/namespaces/{NAMESPACE}/services");
    succeed(client, "POST", &services, Some(&service)).await?;
    let certificate = json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "ServingCertificate", "metadata": {"name": "hook"},
        "spec": {"serviceName": "hook", "secretName": "hook-cert"},
    });
    succeed(
        client,
        "POST",
        &serving_certificates(NAMESPACE),
        Some(&certificate),
    )
    .await?;
    Ok(())
}

/// A definition that asks for the trust bundle, with a conversion that is never called: it has one version.
fn definition(plural: &str) -> Value {
    let kind = plural.trim_end_matches('s');
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.by-hand.example.com"),
            "annotations": {"windlass.dev/inject-ca-from": format!("{NAMESPACE}/hook")},
        },
        "spec": {
            "group": "by-hand.example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"service": {"namespace": NAMESPACE, "name": "hook"}},
            }},
        },
    })
}

fn has_bundle(definition: &Value) -> bool {
    let bundle = definition.pointer("/spec/conversion/webhook/clientConfig/caBundle");
    bundle.is_some_and(|bundle| bundle.as_str().is_some_and(|text| !text.is_empty()))
}

fn is_ours(definition: &Value) -> bool {
    let entries = definition["metadata"]["managedFields"].as_array();
    entries
        .into_iter()
        .flatten()
        .any(|entry| entry["manager"] == INJECT && entry["fieldsV1"].get("f:spec").is_some())
}

/// An owner that applies is refused while anybody else owns a field of what it drops; whoever writes in any other way is not.
pub(super) async fn who_applies_a_definition_may_drop_its_conversion(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    create_certificate(cluster).await?;
    let (mut applied, created) = (definition("applieds"), definition("createds"));
    let path = format!("{CRDS}/applieds.by-hand.example.com");
    let answer = request::apply(client, &path, OWNER, false, &applied).await?;
    anyhow::ensure!(answer.code < 300, "{answer}");
    succeed(client, "POST", CRDS, Some(&created)).await?;
    let created_path = format!("{CRDS}/createds.by-hand.example.com");
    until(
        "both have the trust bundle, and ours is what we may keep",
        PATIENCE,
        async || {
            let applied = get(client, &path).await?.context("gone")?;
            let created = get(client, &created_path).await?.context("gone")?;
            let is_done = has_bundle(&applied) && has_bundle(&created) && !is_ours(&applied);
            Ok(check(is_done, || format!("{applied}\n{created}")))
        },
    )
    .await?;
    let created = get(client, &created_path).await?.context("gone")?;
    anyhow::ensure!(
        is_ours(&created),
        "a second write of what nobody applies: {created}"
    );
    applied["spec"]["conversion"] = json!({"strategy": "None"});
    let answer = request::apply(client, &path, OWNER, false, &applied).await?;
    anyhow::ensure!(
        answer.code < 300,
        "the owner may not drop the conversion: {answer}"
    );
    let dropped = get(client, &path).await?.context("gone")?;
    anyhow::ensure!(
        dropped["spec"]["conversion"] == json!({"strategy": "None"}),
        "{dropped}"
    );
    Ok(())
}
