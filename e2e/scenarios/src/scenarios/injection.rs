//! Targets without a bundle.

use anyhow::Context;
use serde_json::{Value, json};

use crate::{
    request,
    steps::{CRDS, PATIENCE, check, get, serving_certificates, succeed, until},
    test_cluster::TestCluster,
};

/// The namespace of the ServingCertificate.
pub(super) const NAMESPACE: &str = "by-hand";

/// The field manager that applies a CRD.
const OWNER: &str = "an-owner";

/// The operator's field manager.
const INJECT: &str = "windlass-inject";

/// Creates a Service without pods, and its ServingCertificate.
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

/// A CRD that requests the trust bundle. Its conversion is never called, since it has one version.
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

fn is_owned_by_windlass(definition: &Value) -> bool {
    let entries = definition["metadata"]["managedFields"].as_array();
    entries
        .into_iter()
        .flatten()
        .any(|entry| entry["manager"] == INJECT && entry["fieldsV1"].get("f:spec").is_some())
}

/// An apply that removes the conversion fails while another manager owns a field in it. Other writes do not fail.
pub(super) async fn an_owner_can_remove_the_conversion_of_an_applied_crd(
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
        "both have the trust bundle, and Windlass owns no field of the applied one",
        PATIENCE,
        async || {
            let applied = get(client, &path).await?.context("it does not exist")?;
            let created = get(client, &created_path).await?.context("it does not exist")?;
            let is_done = has_bundle(&applied) && has_bundle(&created) && !is_owned_by_windlass(&applied);
            Ok(check(is_done, || format!("{applied}\n{created}")))
        },
    )
    .await?;
    let created = get(client, &created_path).await?.context("it does not exist")?;
    anyhow::ensure!(
        is_owned_by_windlass(&created),
        "the created CRD was written again: {created}"
    );
    applied["spec"]["conversion"] = json!({"strategy": "None"});
    let answer = request::apply(client, &path, OWNER, false, &applied).await?;
    anyhow::ensure!(
        answer.code < 300,
        "the owner cannot remove the conversion: {answer}"
    );
    let dropped = get(client, &path).await?.context("it does not exist")?;
    anyhow::ensure!(
        dropped["spec"]["conversion"] == json!({"strategy": "None"}),
        "{dropped}"
    );
    Ok(())
}
