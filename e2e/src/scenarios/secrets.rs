//! Secrets that are deleted under the operator.

use anyhow::Context;

use super::{rotation::CERTIFICATE, traffic};
use crate::{
    bed::{Bed, OPERATOR_NAMESPACE},
    steps::{PATIENCE, get, install, list, succeed, until},
};

pub(super) async fn a_deleted_serving_secret_is_issued_again(bed: &Bed) -> anyhow::Result<()> {
    let path = format!("/api/v1/namespaces/sample-system/secrets/{CERTIFICATE}-cert");
    deleted_under_load(bed, async || Ok(path.clone())).await
}

pub(super) async fn a_deleted_ca_secret_is_made_again(bed: &Bed) -> anyhow::Result<()> {
    deleted_under_load(bed, async || {
        let secrets = format!("/api/v1/namespaces/{OPERATOR_NAMESPACE}/secrets");
        let labelled = format!("{secrets}?labelSelector=windlass.dev/serving-certificate");
        let found = list(&bed.client, &labelled).await?;
        let secret = found
            .first()
            .context("no CA Secret with the label windlass.dev/serving-certificate")?;
        Ok(format!(
            "{secrets}/{}",
            crate::request::text(secret, "/metadata/name")
        ))
    })
    .await
}

async fn deleted_under_load(
    bed: &Bed,
    find: impl AsyncFnOnce() -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    let _operator = bed.operator.start()?;
    install(&bed.client, "sample", "sample-system", &bed.bundle("sample.v1")?).await?;
    let path = find().await?;
    let load = traffic::start(bed, &["v1", "v1beta1"]).await?;
    load.at_least(50).await;
    let before = get(&bed.client, &path).await?.context("no such Secret")?["metadata"]["uid"].clone();
    succeed(&bed.client, "DELETE", &path, None).await?;
    until(&format!("{path} is there again"), PATIENCE, async || {
        Ok(match get(&bed.client, &path).await? {
            Some(secret) if secret["metadata"]["uid"] != before => Ok(()),
            _ => Err("gone".to_owned()),
        })
    })
    .await?;
    bed.settled("sample-system", CERTIFICATE).await?;
    load.at_least(100).await;
    traffic::finish(load).await?;
    Ok(())
}
