//! Operators that configure their conversion webhooks themselves.

use anyhow::Context;
use serde_json::{Value, json};

use crate::{
    steps::{
        BUNDLE_DEPLOYMENTS, PATIENCE, bundle_deployment, check, delete, get, list, ready, succeed, until,
    },
    test_cluster::TestCluster,
};

const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/trinkets.sample.windlass.dev";
const SERVICES: &str = "/api/v1/namespaces/own-system/services";

async fn conversion_path(cluster: &TestCluster) -> anyhow::Result<Value> {
    let crd = get(&cluster.client, CRD).await?.context("no CRD")?;
    let conversion = &crd["spec"]["conversion"];
    anyhow::ensure!(
        conversion["strategy"] == "Webhook",
        "the conversion is {conversion}"
    );
    Ok(conversion["webhook"]["clientConfig"]["service"]["path"].clone())
}

pub(super) async fn a_conversion_that_the_operator_manages_itself_is_not_changed(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let bundle = cluster.add_bundle(&crate::sample::bundle("own-namespace"), "own")?;
    let stanza = json!({"strategy": "Webhook", "webhook": {
        "clientConfig": {"service": {"namespace": "own-system", "name": "theirs", "path": "/written"}},
        "conversionReviewVersions": ["v1"],
    }});
    cluster.edit(
        &bundle,
        "    singular: trinket\n",
        &format!("    singular: trinket\n  conversion: {stanza}\n"),
    )?;
    let mut object = bundle_deployment("own", "own-system", "own");
    object["spec"]["watchNamespaces"] = json!(["own-system"]);
    object["spec"]["conversion"] = json!("External");
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    ready(&cluster.client, "own", PATIENCE).await?;
    anyhow::ensure!(
        conversion_path(cluster).await? == "/written",
        "the CRD was not created with its own conversion"
    );

    let theirs =
        json!({"spec": {"conversion": {"webhook": {"clientConfig": {"service": {"path": "/changed"}}}}}});
    succeed(&cluster.client, "PATCH", CRD, Some(&theirs)).await?;
    // The reconciliation that recreates the Service has observed the change.
    let services = list(&cluster.client, SERVICES).await?;
    let name = services
        .first()
        .and_then(|service| service["metadata"]["name"].as_str())
        .context("the install has no Service")?;
    let service = format!("{SERVICES}/{name}");
    delete(&cluster.client, &service).await?;
    until("the Service is recreated", PATIENCE, async || {
        let live = get(&cluster.client, &service).await?;
        Ok(check(live.is_some(), || "it does not exist".to_owned()))
    })
    .await?;
    ready(&cluster.client, "own", PATIENCE).await?;
    anyhow::ensure!(
        conversion_path(cluster).await? == "/changed",
        "the conversion was overwritten"
    );
    delete(&cluster.client, &format!("{BUNDLE_DEPLOYMENTS}/own")).await?;
    until("the BundleDeployment is deleted", PATIENCE, async || {
        let live = get(&cluster.client, &format!("{BUNDLE_DEPLOYMENTS}/own")).await?;
        Ok(check(live.is_none(), || "it still exists".to_owned()))
    })
    .await?;
    anyhow::ensure!(
        conversion_path(cluster).await? == "/changed",
        "the removal changed the conversion"
    );
    Ok(())
}
