//! Bundles in a cluster that lacks something they require.

use std::fs;

use anyhow::Context;
use serde_json::{Value, json};

use super::{foreign, traffic};
use crate::{
    request::text,
    steps::{
        BUNDLE_DEPLOYMENTS, PATIENCE, bundle_deployment, check, condition, current, list, ready, succeed,
        until,
    },
    test_cluster::TestCluster,
};

const MONITORS: &str = "/apis/monitoring.coreos.com/v1/namespaces/own-system/servicemonitors";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/later/roles";

fn monitors() -> Value {
    foreign::crd(
        "monitoring.coreos.com/v1",
        "ServiceMonitor",
        "servicemonitors",
        true,
    )
}

pub(super) async fn objects_without_a_served_kind_are_created_later(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let bundle = cluster.add_bundle(&crate::sample::bundle("own-namespace"), "own")?;
    let modes = "  - type: MultiNamespace\n    supported: ";
    cluster.edit(&bundle, &format!("{modes}false"), &format!("{modes}true"))?;
    let monitor = json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": {"name": "metrics"},
    });
    fs::write(bundle.join("manifests/monitor.json"), monitor.to_string())?;
    let mut object = bundle_deployment("own", "own-system", "own");
    object["spec"]["watchNamespaces"] = json!(["own-system", "later"]);
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    let installed = ready(&cluster.client, "own", PATIENCE).await?;
    let accepted = current(&installed, "Accepted", "True").context("it is not accepted")?;
    let message = text(accepted, "/message");
    anyhow::ensure!(
        text(accepted, "/reason") == "AcceptedWithWarnings"
            && message.contains("ServiceMonitor")
            && message.contains("namespace later"),
        "the message lists no omitted objects: {accepted}"
    );

    foreign::define(&cluster.client, &monitors()).await?;
    traffic::create_namespace(cluster, "later").await?;
    for collection in [MONITORS, ROLES] {
        until("the omitted objects are created", PATIENCE, async || {
            let there = list(&cluster.client, collection).await?;
            Ok(check(!there.is_empty(), || {
                format!("the list of {collection} is empty")
            }))
        })
        .await?;
    }
    until("objects are still omitted", PATIENCE, async || {
        let installed = ready(&cluster.client, "own", PATIENCE).await?;
        let accepted = current(&installed, "Accepted", "True")
            .cloned()
            .unwrap_or_default();
        Ok(check(text(&accepted, "/reason") == "Done", || {
            accepted.to_string()
        }))
    })
    .await?;
    Ok(())
}

pub(super) async fn a_bundle_waits_for_the_kinds_that_it_requires(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let bundle = cluster.add_bundle(&crate::sample::bundle("own-namespace"), "own")?;
    let dependencies = json!({"dependencies": [
        {"type": "olm.gvk", "value": {"group": "monitoring.coreos.com", "version": "v1", "kind": "ServiceMonitor"}},
    ]});
    fs::write(
        bundle.join("metadata/dependencies.yaml"),
        dependencies.to_string(),
    )?;
    let mut object = bundle_deployment("own", "own-system", "own");
    object["spec"]["watchNamespaces"] = json!(["own-system"]);
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    let refused = condition(
        &cluster.client,
        &format!("{BUNDLE_DEPLOYMENTS}/own"),
        "Accepted",
        "False",
        PATIENCE,
    )
    .await?;
    let accepted = current(&refused, "Accepted", "False").context("it is accepted")?;
    anyhow::ensure!(
        text(accepted, "/reason") == "RequirementsNotMet"
            && text(accepted, "/message").contains("ServiceMonitor (monitoring.coreos.com/v1)"),
        "unexpected rejection: {accepted}"
    );
    let namespaces = list(&cluster.client, "/api/v1/namespaces").await?;
    anyhow::ensure!(
        !namespaces
            .iter()
            .any(|namespace| text(namespace, "/metadata/name") == "own-system"),
        "objects were written"
    );
    foreign::define(&cluster.client, &monitors()).await?;
    ready(&cluster.client, "own", PATIENCE).await?;
    Ok(())
}
