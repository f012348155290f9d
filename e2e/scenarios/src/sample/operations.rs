//! Operations on the sample.

use std::path::PathBuf;

use anyhow::Context;
use serde_json::Value;
use windlass_bundle::Bundle;

use super::names::{CERTIFICATE, DEFINITION, NAMESPACE, SERVING_SECRET};
use crate::{
    request::text,
    steps::{self, PATIENCE, get},
    test_cluster::TestCluster,
};

/// The folder of a sample bundle in the repository.
pub fn bundle(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "bundles", name]
        .iter()
        .collect()
}

/// Reads the CRD from the manifests of the older sample.
///
/// # Errors
///
/// Fails if the bundle cannot be read.
pub fn manifest() -> anyhow::Result<Value> {
    let files = windlass_bundle::sources::load(&bundle("sample.v1"))?;
    let bundle = Bundle::parse(&files).map_err(|problems| anyhow::anyhow!("{problems:?}"))?;
    let crd = bundle.crds.first().context("the sample has no CRD")?;
    Ok(crd.object.clone())
}

/// Adds the newer sample to the operator's bundle folder, changed to store its newest version. Returns the
/// folder's name.
///
/// # Errors
///
/// Fails if it cannot be copied or changed.
pub fn storing_newest(cluster: &TestCluster) -> anyhow::Result<String> {
    let name = "sample.v2-storing-v2";
    let folder = cluster.add_bundle(&bundle("sample.v2"), name)?;
    for (version, is_stored) in [("v1", false), ("v2", true)] {
        let line = |stored| format!("- name: {version}\n    served: true\n    storage: {stored}");
        cluster.edit(&folder, &line(!is_stored), &line(is_stored))?;
    }
    Ok(name.to_owned())
}

/// Installs a sample bundle and waits until it is ready.
pub async fn install(cluster: &TestCluster, name: &str) -> anyhow::Result<Value> {
    steps::install(&cluster.client, "sample", NAMESPACE, &cluster.bundle(name)?).await
}

/// Sets another bundle as the source; it must be in the operator's bundle folder.
pub async fn set_source(cluster: &TestCluster, folder: &str) -> anyhow::Result<()> {
    steps::set_source(&cluster.client, "sample", folder).await
}

/// Reads the CRD.
pub async fn crd(cluster: &TestCluster) -> anyhow::Result<Value> {
    get(&cluster.client, DEFINITION).await?.context("no CRD")
}

/// Waits until the ServingCertificate is stable and all endpoints and targets are current.
pub async fn settled(cluster: &TestCluster) -> anyhow::Result<Value> {
    cluster.settled(NAMESPACE, CERTIFICATE).await
}

/// Reads the trust bundle, in base64.
pub async fn trust_bundle(cluster: &TestCluster) -> anyhow::Result<String> {
    let secret = get(&cluster.client, SERVING_SECRET).await?.context("no Secret")?;
    let bundle = text(&secret, "/data/ca.crt");
    anyhow::ensure!(!bundle.is_empty(), "{SERVING_SECRET} has no ca.crt");
    Ok(bundle.to_owned())
}

/// Requests a rotation (`leaf` or `ca`).
pub async fn request_rotation(cluster: &TestCluster, what: &str) -> anyhow::Result<()> {
    steps::request_rotation(&cluster.client, NAMESPACE, CERTIFICATE, what).await?;
    Ok(())
}

/// Requests a rotation (`leaf` or `ca`) and waits until it is complete.
pub async fn rotate(cluster: &TestCluster, what: &str) -> anyhow::Result<()> {
    steps::rotate(&cluster.client, NAMESPACE, CERTIFICATE, what, PATIENCE).await
}
