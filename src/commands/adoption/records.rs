//! Storage of adoption records.

use anyhow::{Context, bail};
use windlass_adoption::{AdoptionRecord, record_name};
use windlass_cluster::{Cluster, kinds};
use windlass_object::{names, object};

use crate::commands::{cluster::explain_error, install::explain_namespace_error};

/// Reads the adoption record of a BundleDeployment, if it exists.
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
    let secret = cluster.read(&key).await.map_err(explain_error)?;
    secret
        .map(|secret| AdoptionRecord::from_secret(&secret).with_context(|| key.to_string()))
        .transpose()
}

/// Reads the adoption record of a BundleDeployment.
///
/// # Errors
///
/// When it does not exist, or cannot be read.
pub(super) async fn require(
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

/// Creates a record. An existing record is kept.
///
/// # Errors
///
/// When the cluster rejects the write.
pub(super) async fn write(
    cluster: &Cluster,
    operator_namespace: &str,
    record: &AdoptionRecord,
) -> anyhow::Result<()> {
    let secret = record.to_secret(operator_namespace)?;
    match cluster.create(&secret, names::COMMAND).await {
        Err(error) if !error.is_conflict() => Err(explain_namespace_error(operator_namespace, error)),
        _ => Ok(()),
    }
}

/// Deletes the record, which ends the adoption.
///
/// # Errors
///
/// When the cluster rejects the request.
pub(super) async fn delete(cluster: &Cluster, operator_namespace: &str, name: &str) -> anyhow::Result<()> {
    let key = kinds::SECRET.object(Some(operator_namespace), &record_name(name));
    let Some(secret) = cluster.read(&key).await.map_err(explain_error)? else {
        return Ok(());
    };
    let uid = object::text(&secret, "/metadata/uid");
    cluster.delete(&key, uid).await.map_err(explain_error)
}
