//! ConfigMaps with a bundle, in the operator's namespace.

use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use windlass_bundle::{
    Files,
    sources::{MOST_CONFIG_MAPS, StoredBundle, config_maps::PART},
};
use windlass_cluster::{Cluster, kinds};
use windlass_object::{ObjectKey, names, object};

use super::namespace_error::explain_namespace_error;
use crate::commands::cluster::explain_error;

/// Maximum time for the deletion of a ConfigMap, and the poll interval.
const DELETION_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The ConfigMaps with the parts of a bundle's archive. Their names contain a digest of their content, which
/// never changes.
#[derive(Clone, Debug)]
pub(super) struct BundleConfigMaps {
    deployment: String,
    namespace: String,
    config_maps: Vec<Value>,
}

impl BundleConfigMaps {
    /// Divides the bundle of a BundleDeployment into ConfigMaps in the operator's `namespace`.
    ///
    /// # Errors
    ///
    /// When it is too large.
    pub(super) fn new(deployment: &str, namespace: &str, files: &Files) -> anyhow::Result<Self> {
        let bundle = StoredBundle::from_files(files).context("cannot create an archive of the bundle")?;
        let config_maps = bundle.config_maps(deployment, namespace);
        if config_maps.len() > MOST_CONFIG_MAPS {
            bail!(
                "the bundle is too large for ConfigMaps: {} MiB compressed, limit {} MiB",
                bundle.size() >> 20,
                (MOST_CONFIG_MAPS * PART) >> 20
            );
        }
        Ok(Self {
            deployment: deployment.to_owned(),
            namespace: namespace.to_owned(),
            config_maps,
        })
    }

    /// Returns the names of the ConfigMaps, in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.config_maps
            .iter()
            .filter_map(|config_map| object::text(config_map, "/metadata/name"))
    }

    /// Creates every ConfigMap, before anything refers to it.
    ///
    /// # Errors
    ///
    /// When the cluster rejects one.
    pub(super) async fn store(&self, cluster: &Cluster) -> anyhow::Result<()> {
        for config_map in &self.config_maps {
            let key = ObjectKey::from_object(config_map).context("a ConfigMap without a name")?;
            match self.operator_config(cluster, &key).await? {
                None => self.apply(cluster, config_map).await?,
                Some(there) if there["binaryData"] == config_map["binaryData"] => {}
                Some(_) => bail!(
                    "the contents of {key} do not match the digest in its name: delete it and try again"
                ),
            }
        }
        Ok(())
    }

    /// Makes the BundleDeployment the owner of every ConfigMap, so that they are deleted with it. Deleted
    /// ones are created again.
    ///
    /// # Errors
    ///
    /// When the cluster rejects the write.
    pub(super) async fn set_owner(&self, cluster: &Cluster, deployment: &Value) -> anyhow::Result<()> {
        for config_map in &self.config_maps {
            let mut owned = config_map.clone();
            owned["metadata"]["ownerReferences"] = json!([{
                "apiVersion": names::API_VERSION,
                "kind": kinds::BUNDLE_DEPLOYMENT.kind,
                "name": self.deployment,
                "uid": deployment["metadata"]["uid"],
            }]);
            self.apply(cluster, &owned).await?;
        }
        Ok(())
    }

    async fn apply(&self, cluster: &Cluster, config_map: &Value) -> anyhow::Result<()> {
        let applied = cluster.apply(config_map, names::COMMAND, true).await;
        applied.map_err(|error| explain_namespace_error(&self.namespace, error))?;
        Ok(())
    }

    /// Returns the existing ConfigMap. One of an earlier BundleDeployment with the same name will be
    /// garbage-collected: it is deleted, and this waits until it is gone.
    async fn operator_config(&self, cluster: &Cluster, key: &ObjectKey) -> anyhow::Result<Option<Value>> {
        let read = async || {
            let read = cluster.read(key).await;
            read.map_err(|error| explain_namespace_error(&self.namespace, error))
        };
        let Some(there) = read().await? else {
            return Ok(None);
        };
        let deployment = kinds::BUNDLE_DEPLOYMENT.object(None, &self.deployment);
        let deployment = cluster.read(&deployment).await.map_err(explain_error)?;
        let uid = deployment
            .as_ref()
            .and_then(|deployment| object::text(deployment, "/metadata/uid"));
        let is_going = object::is_terminating(&there);
        let is_left_behind = owner(&there).is_some_and(|owner| Some(owner) != uid);
        if !is_going && !is_left_behind {
            return Ok(Some(there));
        }
        let uid = object::text(&there, "/metadata/uid");
        cluster.delete(key, uid).await.map_err(explain_error)?;
        let gone = async {
            while let Some(live) = read().await? {
                if object::text(&live, "/metadata/uid") != uid {
                    break;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            Ok(None)
        };
        tokio::time::timeout(DELETION_TIMEOUT, gone)
            .await
            .with_context(|| format!("timed out waiting for {key} to be deleted"))?
    }
}

/// Lists the ConfigMaps of a BundleDeployment: those with bundles, and those with revision records.
///
/// # Errors
///
/// When they cannot be listed.
pub(crate) async fn list_config_maps(
    cluster: &Cluster,
    namespace: &str,
    deployment: &str,
) -> anyhow::Result<Vec<Value>> {
    let mut stored = Vec::new();
    for label in [names::BUNDLE_SOURCE, names::REVISION_OF] {
        let selector = format!("{label}={deployment}");
        let listed = cluster
            .list(&kinds::CONFIG_MAP, Some(namespace), Some(&selector))
            .await;
        stored.extend(listed.map_err(|error| explain_namespace_error(namespace, error))?);
    }
    Ok(stored)
}

/// Returns the uid of the BundleDeployment that owns a ConfigMap.
fn owner(config_map: &Value) -> Option<&str> {
    object::items(config_map, "/metadata/ownerReferences")
        .iter()
        .find(|owner| object::text(owner, "/kind") == Some(&*kinds::BUNDLE_DEPLOYMENT.kind))
        .and_then(|owner| object::text(owner, "/uid"))
}
