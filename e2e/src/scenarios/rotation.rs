//! Rotations under load.

use anyhow::Context;
use serde_json::json;

use super::traffic;
use crate::{
    bed::Bed,
    steps::{CRDS, PATIENCE, get, install, rotate},
};

/// The ServingCertificate of the sample bundles is named as their Service.
pub(super) const CERTIFICATE: &str = "sample-operator-service";

/// How long a rotation may take: Secrets reach the pods after the node's delay.
pub(super) const ROTATION: std::time::Duration = PATIENCE;

pub(super) async fn the_leaf_rotates_under_load(bed: &Bed) -> anyhow::Result<()> {
    let _operator = bed.operator.start()?;
    install(&bed.client, "sample", "sample-system", &bed.bundle("sample.v1")?).await?;
    let load = traffic::start(bed, &["v1", "v1beta1"]).await?;
    load.at_least(50).await;
    let before = generation(bed).await?;
    rotate(&bed.client, "sample-system", CERTIFICATE, "leaf", ROTATION).await?;
    load.at_least(50).await;
    traffic::finish(load).await?;
    anyhow::ensure!(
        generation(bed).await? == before,
        "the leaf's renewal touched a target"
    );
    Ok(())
}

pub(super) async fn the_ca_rotates_under_load(bed: &Bed) -> anyhow::Result<()> {
    let _operator = bed.operator.start()?;
    install(&bed.client, "sample", "sample-system", &bed.bundle("sample.v1")?).await?;
    let load = traffic::start(bed, &["v1", "v1beta1"]).await?;
    load.at_least(50).await;
    let before = generation(bed).await?;
    for _ in 0..2 {
        rotate(&bed.client, "sample-system", CERTIFICATE, "ca", ROTATION).await?;
    }
    load.at_least(50).await;
    traffic::finish(load).await?;
    let writes = generation(bed).await? - before;
    anyhow::ensure!(
        writes == 2,
        "two CA rotations changed the CRD's spec {writes} times"
    );
    Ok(())
}

pub(super) async fn a_server_that_never_reloads_is_restarted_without_a_failed_call(
    bed: &Bed,
) -> anyhow::Result<()> {
    let _operator = bed.operator.start()?;
    let bundle = bed.bundle("sample.v1")?;
    bed.edit(
        &bundle,
        "- name: POD_IP",
        "- name: RELOAD\n                  value: \"false\"\n                - name: POD_IP",
    )?;
    install(&bed.client, "sample", "sample-system", &bundle).await?;
    let load = traffic::start(bed, &["v1", "v1beta1"]).await?;
    load.at_least(50).await;
    rotate(&bed.client, "sample-system", CERTIFICATE, "leaf", ROTATION).await?;
    rotate(&bed.client, "sample-system", CERTIFICATE, "ca", ROTATION).await?;
    load.at_least(50).await;
    traffic::finish(load).await?;
    let path = "/apis/apps/v1/namespaces/sample-system/deployments/sample-operator";
    let deployment = get(&bed.client, path).await?.context("no Deployment")?;
    let restarts = &deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"];
    anyhow::ensure!(
        *restarts == json!("3"),
        "one restart a rotation was due, the revision is {restarts}"
    );
    Ok(())
}

/// How often the spec of the sample's CRD was written.
async fn generation(bed: &Bed) -> anyhow::Result<i64> {
    let crd = get(&bed.client, &format!("{CRDS}/widgets.sample.windlass.dev"))
        .await?
        .context("no CRD")?;
    crd["metadata"]["generation"]
        .as_i64()
        .context("the CRD has no generation")
}
