//! The bundle source of an install.

use anyhow::bail;
use oci::ImageReference;
use serde_json::{Value, json};
use windlass_api::CatalogSource;
use windlass_bundle::Files;
use windlass_object::{ObjectKey, names, object};

use super::bundle_config_maps::BundleConfigMaps;
use crate::commands::bundle_location::{BundleLocation, needs_catalog};

/// Where the operator gets a bundle.
#[derive(Clone, Debug)]
pub(super) enum InstallSource {
    /// ConfigMaps that this command writes.
    ConfigMaps(BundleConfigMaps),
    /// An image, which the operator pulls with the credentials in a Secret.
    Image {
        /// The image, by tag or digest.
        image: ImageReference,
        /// The name of the Secret.
        pull_secret: Option<String>,
    },
    /// A catalog channel that the operator follows.
    Catalog(Box<CatalogSource>),
}

impl InstallSource {
    /// Returns the source of the BundleDeployment `deployment` for a bundle at `location`. `files` is the
    /// content of a local bundle, whose ConfigMaps go to the operator's `namespace`.
    ///
    /// # Errors
    ///
    /// When the bundle is too large for ConfigMaps, or the Secret is not needed.
    pub(super) fn new(
        location: &BundleLocation,
        pull_secret: Option<&str>,
        files: Option<&Files>,
        deployment: &str,
        namespace: &str,
    ) -> anyhow::Result<Self> {
        match (location, files) {
            (BundleLocation::Image(image), _) => Ok(Self::Image {
                image: image.clone(),
                pull_secret: pull_secret.map(str::to_owned),
            }),
            (BundleLocation::Local(path), _) if pull_secret.is_some() => {
                bail!("{} is not an image: omit --pull-secret", path.display())
            }
            (BundleLocation::Local(_), Some(files)) => Ok(Self::ConfigMaps(BundleConfigMaps::new(
                deployment, namespace, files,
            )?)),
            (BundleLocation::Local(path), None) => bail!("{} was not read", path.display()),
            (BundleLocation::Package(package), _) => Err(needs_catalog(package)),
        }
    }

    /// Returns the `spec.source` of a BundleDeployment for this source.
    pub(super) fn spec(&self) -> Value {
        match self {
            Self::ConfigMaps(config_maps) => {
                let names: Vec<_> = config_maps.names().map(|name| json!({ "name": name })).collect();
                json!({ "configMaps": names })
            }
            Self::Image { image, pull_secret } => {
                let mut source = json!({ "ref": image.to_string() });
                if let Some(name) = pull_secret {
                    source["pullSecret"] = json!(name);
                }
                json!({ "image": source })
            }
            Self::Catalog(source) => json!({ "catalog": source }),
        }
    }

    /// Returns the ConfigMaps to write first.
    pub(super) fn config_maps(&self) -> Option<&BundleConfigMaps> {
        match self {
            Self::ConfigMaps(config_maps) => Some(config_maps),
            Self::Image { .. } | Self::Catalog(_) => None,
        }
    }

    /// Checks that the existing BundleDeployment can get this source. A source of another kind can be
    /// replaced only if this command is its only field manager.
    ///
    /// # Errors
    ///
    /// Names the field to change.
    pub(super) fn check_before(&self, key: &ObjectKey, before: &Value) -> anyhow::Result<()> {
        let own = match self {
            Self::ConfigMaps(_) => "configMaps",
            Self::Image { .. } => "image",
            Self::Catalog(_) => "catalog",
        };
        let others = ["directory", "configMaps", "image", "catalog"];
        for field in others.into_iter().filter(|field| *field != own) {
            if before["spec"]["source"].get(field).is_some() && !is_removed_by_apply(before, field) {
                bail!(
                    "{key} has spec.source.{field}, which another field manager set: change it there, or specify another \
                         --name"
                );
            }
        }
        Ok(())
    }
}

/// Reports whether applying without a source field removes it: no other field manager owns a part of it.
fn is_removed_by_apply(before: &Value, field: &str) -> bool {
    let pointer = format!("/fieldsV1/f:spec/f:source/f:{field}");
    let mut owners = object::items(before, "/metadata/managedFields")
        .iter()
        .filter(|entry| entry.pointer(&pointer).is_some())
        .peekable();
    owners.peek().is_some()
        && owners.all(|entry| entry["manager"] == names::COMMAND && entry["operation"] == "Apply")
}

#[cfg(test)]
mod tests {
    use windlass_cluster::kinds;

    use super::*;

    fn image(pull_secret: Option<&str>) -> InstallSource {
        InstallSource::Image {
            image: "quay.io/team/app:v1".parse().unwrap(),
            pull_secret: pull_secret.map(str::to_owned),
        }
    }

    #[test]
    fn an_image_source_has_its_pull_secret() {
        assert_eq!(
            image(None).spec(),
            json!({"image": {"ref": "quay.io/team/app:v1"}})
        );
        assert_eq!(image(Some("a")).spec()["image"]["pullSecret"], "a");
    }

    #[test]
    fn a_source_of_another_field_manager_is_not_replaced() {
        let owner = |manager: &str, operation: &str| {
            json!({"manager": manager, "operation": operation,
                "fieldsV1": {"f:spec": {"f:source": {"f:configMaps": {}}}}})
        };
        let ours = owner(names::COMMAND, "Apply");
        let key = kinds::BUNDLE_DEPLOYMENT.object(None, "a");
        for (owners, goes) in [
            (vec![ours.clone()], true),
            (vec![], false),
            (vec![owner("kubectl", "Update")], false),
            (vec![ours.clone(), owner("argocd-controller", "Apply")], false),
        ] {
            let before = json!({
                "metadata": {"managedFields": owners}, "spec": {"source": {"configMaps": [{"name": "a"}]}},
            });
            let checked = image(None)
                .check_before(&key, &before)
                .map_err(|error| error.to_string());
            assert_eq!(checked.is_ok(), goes, "{checked:?}");
            if let Err(error) = checked {
                assert!(error.contains("spec.source.configMaps"), "{error}");
            }
        }
        let same = json!({"spec": {"source": {"image": {"ref": "a"}}}});
        image(None).check_before(&key, &same).unwrap();
    }
}
