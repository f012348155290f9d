//! Where the record of an adoption is kept.

use anyhow::{Context, bail};
use windlass_adoption::{AdoptionRecord, record_name};
use windlass_cluster::{Cluster, kinds};
use windlass_object::{names, object};

use crate::commands::{cluster::explained, install::explained_in};

/// Reads the record of the adoption for a BundleDeployment, if there is one.
///
/// # Errors
///
/// When it cannot be read.
pub(super) async fn read(
    cluster: &Cluster,
    operator_namespace: &str,
    name: &str,
) -> anyhow::Result<Option<AdoptionRecord>> {
    let key = kinds::SECRET.object(Some(operator_namespace), &record_name(name));
    let secret = cluster.read(&key).await.map_err(explained)?;
    secret
        .map(|secret| AdoptionRecord::from_secret(&secret).with_context(|| key.to_string()))
        .transpose()
}

/// The same, which must be there.
///
/// # Errors
///
/// When it is not, or cannot be read.
pub(super) async fn existing(
    cluster: &Cluster,
    operator_namespace: &str,
    name: &str,
) -> anyhow::Result<AdoptionRecord> {
    match read(cluster, operator_namespace, name).await? {
        Some(record) => Ok(record),
        None => bail!(
            "no adoption for {name} found in the namespace {operator_namespace}: it was confirmed or undone, or never begun with \
             windlass install --adopt-from"
        ),
    }
}

/// Writes a record, once.
///
/// # Errors
///
/// When the cluster does not take it.
pub(super) async fn write(
    cluster: &Cluster,
    operator_namespace: &str,
    record: &AdoptionRecord,
) -> anyhow::Result<()> {
    let secret = record.to_secret(operator_namespace)?;
    match cluster.create(&secret, names::COMMAND).await {
        Err(error) if !error.is_conflict() => Err(explained_in(operator_namespace, error)),
        _ => Ok(()),
    }
}

/// Deletes it: the adoption has ended.
///
/// # Errors
///
/// When the cluster refuses.
pub(super) async fn delete(cluster: &Cluster, operator_namespace: &str, name: &str) -> anyhow::Result<()> {
    let key = kinds::SECRET.object(Some(operator_namespace), &record_name(name));
    let Some(secret) = cluster.read(&key).await.map_err(explained)? else {
        return Ok(());
    };
    let uid = object::text(&secret, "/metadata/uid");
    cluster.delete(&key, uid).await.map_err(explained)
}
