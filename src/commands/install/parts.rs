//! A bundle in ConfigMaps beside the operator.

use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use windlass_bundle::{
    Files,
    sources::{
        config_maps::{PART, divide},
        pack::pack,
    },
};
use windlass_cluster::{Cluster, kinds};
use windlass_object::{ObjectKey, names, object, text::hexadecimal};

use super::explained::explained_in;
use crate::commands::cluster::explained;

/// How many ConfigMaps a BundleDeployment may name.
const MOST: usize = 128;

/// How many digits of the digest are in a name: enough that two bundles of one BundleDeployment never share it.
const DIGITS: usize = 16;

/// How long a ConfigMap may take to be gone, and how often that is looked at.
const GOING: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(200);

/// The parts of a bundle's archive. Their names tell what is in them, so that no name ever gets another content.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    deployment: String,
    namespace: String,
    config_maps: Vec<Value>,
}

// === impl Parts ===

impl Parts {
    /// Divides the bundle of a BundleDeployment into ConfigMaps in `namespace`, the operator's.
    ///
    /// # Errors
    ///
    /// When it is too large.
    pub(super) fn of(deployment: &str, namespace: &str, files: &Files) -> anyhow::Result<Self> {
        let archive = pack(files).context("cannot create an archive of the bundle")?;
        let digest = hexadecimal(&Sha256::digest(&archive)[..DIGITS / 2]);
        let config_maps: Vec<Value> = divide(&archive, PART)
            .enumerate()
            .map(|(index, content)| {
                json!({
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {
                        "name": format!("{deployment}-{digest}-{index}"),
                        "namespace": namespace,
                        "labels": { names::BUNDLE_SOURCE: deployment },
                    },
                    "immutable": true,
                    "binaryData": content["binaryData"],
                })
            })
            .collect();
        if config_maps.len() > MOST {
            bail!(
                "the bundle is too large for ConfigMaps: {} MiB compressed, limit {} MiB",
                archive.len() >> 20,
                (MOST * PART) >> 20
            );
        }
        Ok(Self {
            deployment: deployment.to_owned(),
            namespace: namespace.to_owned(),
            config_maps,
        })
    }

    /// The names of the ConfigMaps, in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.config_maps
            .iter()
            .filter_map(|config_map| object::text(config_map, "/metadata/name"))
    }

    /// Sees to it that every ConfigMap is there, before anything refers to it.
    ///
    /// # Errors
    ///
    /// When the cluster does not take one.
    pub(super) async fn store(&self, cluster: &Cluster) -> anyhow::Result<()> {
        for config_map in &self.config_maps {
            let key = ObjectKey::of(config_map).context("a ConfigMap without a name")?;
            match self.lasting(cluster, &key).await? {
                None => self.apply(cluster, config_map).await?,
                Some(there) if there["binaryData"] == config_map["binaryData"] => {}
                Some(_) => bail!(
                    "the contents of {key} do not match the digest in its name: delete it and try again"
                ),
            }
        }
        Ok(())
    }

    /// Makes the BundleDeployment the owner of every ConfigMap, so that they go with it. One that somebody deleted
    /// meanwhile comes back.
    ///
    /// # Errors
    ///
    /// When the cluster does not take it.
    pub(super) async fn own(&self, cluster: &Cluster, deployment: &Value) -> anyhow::Result<()> {
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

    /// Deletes the ConfigMaps that the BundleDeployment owns and does not refer to any more. Those without an owner may
    /// be of another install that is under way.
    ///
    /// # Errors
    ///
    /// When they cannot be listed or deleted.
    pub(super) async fn delete_others(&self, cluster: &Cluster, deployment: &Value) -> anyhow::Result<()> {
        let referred: Vec<_> = object::items(deployment, "/spec/source/configMaps")
            .iter()
            .filter_map(|config_map| object::text(config_map, "/name"))
            .collect();
        for stored in stored(cluster, &self.namespace, &self.deployment).await? {
            let owned = owner(&stored) == object::text(deployment, "/metadata/uid");
            let Some(key) = ObjectKey::of(&stored) else {
                continue;
            };
            if owned && !referred.contains(&key.name.as_str()) {
                let uid = object::text(&stored, "/metadata/uid");
                cluster.delete(&key, uid).await.map_err(explained)?;
            }
        }
        Ok(())
    }

    async fn apply(&self, cluster: &Cluster, config_map: &Value) -> anyhow::Result<()> {
        let applied = cluster.apply(config_map, names::COMMAND, true).await;
        applied.map_err(|error| explained_in(&self.namespace, error))?;
        Ok(())
    }

    /// The ConfigMap that is there, unless it was of a BundleDeployment that is gone: then it is going itself, or will
    /// be, and another has to take its place. That it is gone is waited for.
    async fn lasting(&self, cluster: &Cluster, key: &ObjectKey) -> anyhow::Result<Option<Value>> {
        let read = async || {
            let read = cluster.read(key).await;
            read.map_err(|error| explained_in(&self.namespace, error))
        };
        let Some(there) = read().await? else {
            return Ok(None);
        };
        let deployment = kinds::BUNDLE_DEPLOYMENT.object(None, &self.deployment);
        let deployment = cluster.read(&deployment).await.map_err(explained)?;
        let uid = deployment
            .as_ref()
            .and_then(|deployment| object::text(deployment, "/metadata/uid"));
        let is_going = object::is_terminating(&there);
        let is_left_behind = owner(&there).is_some_and(|owner| Some(owner) != uid);
        if !is_going && !is_left_behind {
            return Ok(Some(there));
        }
        let uid = object::text(&there, "/metadata/uid");
        cluster.delete(key, uid).await.map_err(explained)?;
        let gone = async {
            while let Some(live) = read().await? {
                if object::text(&live, "/metadata/uid") != uid {
                    break;
                }
                tokio::time::sleep(LOOK).await;
            }
            Ok(None)
        };
        tokio::time::timeout(GOING, gone)
            .await
            .with_context(|| format!("timed out waiting for {key} to be deleted"))?
    }
}

/// The ConfigMaps with bundles of a BundleDeployment.
///
/// # Errors
///
/// When they cannot be listed.
pub(crate) async fn stored(
    cluster: &Cluster,
    namespace: &str,
    deployment: &str,
) -> anyhow::Result<Vec<Value>> {
    let selector = format!("{}={deployment}", names::BUNDLE_SOURCE);
    let listed = cluster
        .list(&kinds::CONFIG_MAP, Some(namespace), Some(&selector))
        .await;
    listed.map_err(|error| explained_in(namespace, error))
}

/// The uid of the BundleDeployment that owns a ConfigMap.
fn owner(config_map: &Value) -> Option<&str> {
    object::items(config_map, "/metadata/ownerReferences")
        .iter()
        .find(|owner| object::text(owner, "/kind") == Some(&*kinds::BUNDLE_DEPLOYMENT.kind))
        .and_then(|owner| object::text(owner, "/uid"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_bundle::sources::{archive, config_maps::assemble};

    fn files(content: &str) -> Files {
        Files::from([("manifests/csv.yaml".to_owned(), content.as_bytes().to_vec())])
    }

    fn parts(content: &str) -> Parts {
        Parts::of("name", "windlass-system", &files(content)).unwrap()
    }

    #[test]
    fn what_is_stored_is_what_the_operator_reads() {
        let parts = parts("content");
        let archive = assemble(&parts.config_maps).unwrap();
        assert_eq!(archive::load(archive.as_slice(), "-").unwrap(), files("content"));
    }

    #[test]
    fn names_tell_contents_apart() {
        let names = |content| parts(content).names().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(names("a"), names("a"));
        assert_ne!(names("a"), names("b"));
        let name = names("a").remove(0);
        assert!(
            name.starts_with("name-") && name.ends_with("-0") && name.len() == 5 + DIGITS + 2,
            "{name}"
        );
    }

    #[test]
    fn a_part_never_changes_and_says_whose_it_is() {
        let config_map = &parts("a").config_maps[0];
        assert_eq!(config_map["immutable"], true);
        assert_eq!(
            config_map["metadata"]["labels"],
            json!({"windlass.dev/bundle-source": "name"})
        );
    }
}
