//! From where the operator gets the bundle of an install.

use anyhow::bail;
use oci::ImageReference;
use serde_json::{Value, json};
use windlass_api::CatalogSource;
use windlass_bundle::Files;
use windlass_object::{ObjectKey, names, object};

use super::parts::Parts;
use crate::commands::bundle_location::{BundleLocation, without_catalog};

/// From where the operator gets a bundle.
#[derive(Clone, Debug)]
pub(super) enum InstallSource {
    /// ConfigMaps that this command writes.
    Parts(Parts),
    /// An image, which the operator pulls with the credentials in a Secret.
    Image {
        /// What it is called.
        image: ImageReference,
        /// The name of the Secret.
        pull_secret: Option<String>,
    },
    /// A channel of a catalog, which the operator follows.
    Catalog(Box<CatalogSource>),
}

// === impl InstallSource ===

impl InstallSource {
    /// The source of the BundleDeployment `deployment` for a bundle that is at `location`, with these `files` where they were read. Of a
    /// bundle of this machine, its ConfigMaps are in `namespace`, the operator's.
    ///
    /// # Errors
    ///
    /// When the bundle is too large for ConfigMaps, or the Secret is of no use.
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
                bail!("{} is not an image: leave out --pull-secret", path.display())
            }
            (BundleLocation::Local(_), Some(files)) => {
                Ok(Self::Parts(Parts::of(deployment, namespace, files)?))
            }
            (BundleLocation::Local(path), None) => bail!("{} was not read", path.display()),
            (BundleLocation::Package(package), _) => Err(without_catalog(package)),
        }
    }

    /// As the spec of a BundleDeployment has it.
    pub(super) fn spec(&self) -> Value {
        match self {
            Self::Parts(parts) => {
                let names: Vec<_> = parts.names().map(|name| json!({ "name": name })).collect();
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

    /// What this command writes before anything refers to it.
    pub(super) fn parts(&self) -> Option<&Parts> {
        match self {
            Self::Parts(parts) => Some(parts),
            Self::Image { .. } | Self::Catalog(_) => None,
        }
    }

    /// Whether the BundleDeployment that is there can have this source: one of another kind goes only if nobody else has set it.
    ///
    /// # Errors
    ///
    /// What to change there.
    pub(super) fn check_before(&self, key: &ObjectKey, before: &Value) -> anyhow::Result<()> {
        let own = match self {
            Self::Parts(_) => "configMaps",
            Self::Image { .. } => "image",
            Self::Catalog(_) => "catalog",
        };
        let others = ["directory", "configMaps", "image", "catalog"];
        for field in others.into_iter().filter(|field| *field != own) {
            if before["spec"]["source"].get(field).is_some() && !goes_with_ours(before, field) {
                bail!(
                    "{key} has spec.source.{field}, which this command did not set: change it there, or choose another \
                     --name"
                );
            }
        }
        Ok(())
    }
}

/// Whether an apply of this command that leaves a source out takes it away: nobody else owns a part of it.
fn goes_with_ours(before: &Value, field: &str) -> bool {
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
    fn an_image_is_named_with_what_it_is_pulled_with() {
        assert_eq!(
            image(None).spec(),
            json!({"image": {"ref": "quay.io/team/app:v1"}})
        );
        assert_eq!(image(Some("a")).spec()["image"]["pullSecret"], "a");
    }

    #[test]
    fn another_source_goes_only_if_nobody_else_has_set_it() {
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
