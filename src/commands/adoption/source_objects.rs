//! The current objects of an installation to adopt.

use anyhow::Context;
use serde_json::Value;
use windlass_adoption::{AdoptionSource, HelmRelease, OWNER, SourceName, owner_label_value};
use windlass_cluster::{Cluster, RequestError, kinds};
use windlass_object::ObjectKey;

use super::{issued_certificates, olm};
use crate::commands::cluster::explain_error;

/// Returns the objects of `source`, whose namespace is set.
///
/// # Errors
///
/// When the source does not exist, cannot be read, or is about to change.
pub(super) async fn objects_of_source(
    cluster: &Cluster,
    source: &AdoptionSource,
) -> anyhow::Result<Vec<Value>> {
    let name = source.name();
    let namespace = name.namespace.as_deref().unwrap_or_default();
    let found = match source {
        AdoptionSource::Helm(_) => objects_of_release(cluster, name).await,
        AdoptionSource::CertManager(_) => {
            issued_certificates::objects_of_certificate(cluster, namespace, &name.name).await
        }
        AdoptionSource::ServiceCa(_) => {
            issued_certificates::objects_of_service(cluster, namespace, &name.name).await
        }
        AdoptionSource::Olm(_) => olm::objects_of_csv(cluster, namespace, &name.name).await,
    };
    found.with_context(|| format!("cannot adopt from {source}"))
}

/// Returns the Secrets of a Helm release, visible to Helm or hidden from it.
///
/// # Errors
///
/// When they cannot be listed.
pub(super) async fn releases(
    cluster: &Cluster,
    name: &SourceName,
    is_hidden: bool,
) -> anyhow::Result<Vec<Value>> {
    let selector = format!("{}={},name={}", OWNER.0, owner_label_value(is_hidden), name.name);
    let secrets = cluster
        .list(&kinds::SECRET, name.namespace.as_deref(), Some(&selector))
        .await;
    secrets.map_err(explain_error)
}

async fn objects_of_release(cluster: &Cluster, name: &SourceName) -> anyhow::Result<Vec<Value>> {
    let namespace = name.namespace.as_deref().unwrap_or_default();
    let release = HelmRelease::deployed(&releases(cluster, name, false).await?, namespace)?;
    let mut live = Vec::new();
    for key in release.objects.iter().filter_map(ObjectKey::from_object) {
        match cluster.read(&key).await {
            // The object or its kind was deleted.
            Ok(None) | Err(RequestError::UnknownKind { .. }) => {}
            Ok(Some(object)) => live.push(object),
            Err(error) => return Err(explain_error(error)),
        }
    }
    Ok(live)
}
