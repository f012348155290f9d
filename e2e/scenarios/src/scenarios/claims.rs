//! Two bundles that convert the same CRD.

use anyhow::Context;
use serde_json::json;

use super::traffic;
use crate::{
    request,
    resource::Expectation,
    sample,
    steps::{
        self, BUNDLE_DEPLOYMENTS, CRDS, PATIENCE, check, condition, conditions, delete, get, ready, succeed,
        until,
    },
    test_cluster::TestCluster,
};

/// The namespace of the second bundle.
const RIVAL_NAMESPACE: &str = "/api/v1/namespaces/rival-system";

pub(super) async fn the_second_claim_is_rejected_until_the_first_is_deleted(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    cluster.bundle("rival")?;
    let rival = steps::bundle_deployment("rival", "rival-system", "rival");
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&rival)).await?;
    let path = format!("{BUNDLE_DEPLOYMENTS}/rival");
    let words = conditions(&condition(&cluster.client, &path, "Accepted", "False", PATIENCE).await?);
    for part in [
        "ConversionClaimed",
        "sample",
        "rival",
        "widgets.sample.windlass.dev",
    ] {
        anyhow::ensure!(
            words.contains(part),
            "the message does not contain {part}: {words}"
        );
    }
    anyhow::ensure!(
        get(&cluster.client, RIVAL_NAMESPACE).await?.is_none(),
        "objects were written for a rejected claim"
    );
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    traffic::finish(load).await?;
    delete(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?;
    ready(&cluster.client, "rival", PATIENCE).await?;
    // The second bundle converts, and its webhooks accept any object.
    let load = traffic::start_expecting(cluster, &["v1", "v1beta1"], Expectation::Converted).await?;
    load.at_least(50).await?;
    traffic::finish(load).await?;
    Ok(())
}

pub(super) async fn the_older_claim_wins_in_any_order(cluster: &TestCluster) -> anyhow::Result<()> {
    cluster.bundle("sample.v1")?;
    cluster.bundle("rival")?;
    // The younger one is first in alphabetical order.
    let elder = steps::bundle_deployment("zebra", "zebra-system", "sample.v1");
    let elder = succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&elder))
        .await?
        .body;
    let created = request::text(&elder, "/metadata/creationTimestamp").to_owned();
    let younger = steps::bundle_deployment("aardvark", "rival-system", "rival");
    let path = format!("{BUNDLE_DEPLOYMENTS}/aardvark");
    until("the second object is a second younger", PATIENCE, async || {
        let answer = succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&younger)).await?;
        if request::text(&answer.body, "/metadata/creationTimestamp") != created {
            return Ok(Ok(()));
        }
        delete(&cluster.client, &path).await?;
        Ok(Err("both have the same creation time".to_owned()))
    })
    .await?;
    let _operator = cluster.operator.start()?;
    ready(&cluster.client, "zebra", PATIENCE).await?;
    let words = conditions(&condition(&cluster.client, &path, "Accepted", "False", PATIENCE).await?);
    anyhow::ensure!(
        words.contains("ConversionClaimed") && words.contains("zebra") && words.contains("aardvark"),
        "{words}"
    );
    anyhow::ensure!(
        get(&cluster.client, RIVAL_NAMESPACE).await?.is_none(),
        "objects were written for a rejected claim"
    );
    Ok(())
}

pub(super) async fn a_kind_is_claimed_under_any_crd_name(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let bundle = cluster.bundle("rival")?;
    cluster.edit(
        &bundle,
        "widgets.sample.windlass.dev",
        "widgetry.sample.windlass.dev",
    )?;
    cluster.edit(&bundle, "plural: widgets", "plural: widgetry")?;
    let rival = steps::bundle_deployment("rival", "rival-system", "rival");
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&rival)).await?;
    let path = format!("{BUNDLE_DEPLOYMENTS}/rival");
    let words = conditions(&condition(&cluster.client, &path, "Accepted", "False", PATIENCE).await?);
    anyhow::ensure!(
        words.contains("ConversionClaimed") && words.contains("BundleDeployment sample"),
        "{words}"
    );
    // The CRD outlives its bundle, and still claims the kind.
    delete(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?;
    until("the remaining CRD blocks the install", PATIENCE, async || {
        let words = conditions(
            &get(&cluster.client, &path)
                .await?
                .context("no BundleDeployment")?,
        );
        let said = words.contains("ApiOwned") && words.contains("widgets.sample.windlass.dev");
        Ok(check(said, || words))
    })
    .await?;
    anyhow::ensure!(
        get(&cluster.client, RIVAL_NAMESPACE).await?.is_none(),
        "objects were written for a rejected claim"
    );
    delete(&cluster.client, sample::DEFINITION).await?;
    ready(&cluster.client, "rival", PATIENCE).await?;
    Ok(())
}

pub(super) async fn bundles_with_invalid_conversions_are_rejected(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    for (bundle, expected) in [
        ("conversion-install-modes", "AllNamespaces"),
        ("conversion-crd-duplicate", "same custom resource definition"),
        ("crd-duplicate", "duplicate custom resource definition"),
        ("crd-kind-clash", "is also defined by"),
    ] {
        cluster.add_bundle(&sample::bundle("broken").join(bundle), bundle)?;
        let namespace = format!("{bundle}-system");
        let object = steps::bundle_deployment(bundle, &namespace, bundle);
        succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
        let path = format!("{BUNDLE_DEPLOYMENTS}/{bundle}");
        let refused = condition(&cluster.client, &path, "Accepted", "False", PATIENCE).await?;
        let words = conditions(&refused);
        anyhow::ensure!(
            words.contains("BundleInvalid") && words.contains(expected),
            "{words}"
        );
        anyhow::ensure!(
            get(&cluster.client, &format!("/api/v1/namespaces/{namespace}"))
                .await?
                .is_none(),
            "objects were written for {bundle}"
        );
        // Deleting a rejected BundleDeployment leaves nothing.
        delete(&cluster.client, &path).await?;
    }
    let crds = steps::list(&cluster.client, CRDS).await?;
    let foreign: Vec<_> = crds
        .iter()
        .filter(|crd| crd["spec"]["group"] != json!("windlass.dev"))
        .map(|crd| request::text(crd, "/metadata/name"))
        .collect();
    anyhow::ensure!(foreign.is_empty(), "{foreign:?} were written");
    Ok(())
}
