//! What the guard denies.

use serde_json::Value;
use thiserror::Error;
use windlass_crd::{is_converting, stored_versions, version};
use windlass_object::{
    names,
    object::{self, is_terminating},
};

use super::review::Review;

/// Why a change is refused: every reason, each with the way out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))]
pub struct Refused(pub Vec<Denial>);

/// One reason to refuse a change: sentences for whoever desired to make it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Denial {
    /// The label would change that says whose the CRD is.
    #[error(
        "The label {} marks {crd} as owned by the BundleDeployment {owner} and must not be changed. To hand over the \
         CustomResourceDefinition, delete the BundleDeployment: the CustomResourceDefinition and its objects are kept, \
         and the label is removed.",
        names::BUNDLE_DEPLOYMENT
    )]
    Owner {
        /// The CustomResourceDefinition.
        crd: String,
        /// The BundleDeployment.
        owner: String,
    },
    /// The conversion would change.
    #[error(
        "spec.conversion of {crd} is managed by the BundleDeployment {owner} and must not be changed, or objects are lost \
         and requests fail. To change the conversion, update the BundleDeployment to another bundle; to stop converting, \
         delete it: Windlass removes the conversion as soon as no object needs it."
    )]
    Conversion {
        /// The CustomResourceDefinition.
        crd: String,
        /// The BundleDeployment.
        owner: String,
    },
    /// Versions would go in which objects are stored. The API server refuses that by itself, with 422, before it asks any
    /// webhook (`ValidateCustomResourceDefinitionStoredVersions`); this is the second lock, for what passes the first.
    #[error(
        "Objects of {crd} are stored in {} and could no longer be read: keep all of status.storedVersions in \
         spec.versions. To drop a version, update the BundleDeployment {owner} to a bundle without it: the version is \
         removed when no object is stored in it.",
        versions.join(", ")
    )]
    StoredVersions {
        /// The CustomResourceDefinition.
        crd: String,
        /// The BundleDeployment.
        owner: String,
        /// The versions.
        versions: Vec<String>,
    },
    /// The CRD would go, and every object with it.
    #[error(
        "Deleting {crd} would delete all its objects, which the BundleDeployment {owner} serves. Delete the \
         BundleDeployment first: the CustomResourceDefinition and its objects are kept, and can then be deleted."
    )]
    Deletion {
        /// The CustomResourceDefinition.
        crd: String,
        /// The BundleDeployment.
        owner: String,
    },
}

/// Whether the change in `review` may be made.
///
/// `operator` is the user that Windlass itself is, and `bundle_deployment` the object that [`Review::owner`] names, if
/// there is one.
///
/// # Errors
///
/// When it may not.
pub fn judge(review: &Review, operator: &str, bundle_deployment: Option<&Value>) -> Result<(), Refused> {
    let (Some(old), Some(owner), Some(deployment)) = (review.before(), review.owner(), bundle_deployment)
    else {
        return Ok(());
    };
    if review.user() == operator || !is_claimed(old, deployment) {
        return Ok(());
    }
    let refusals = match review.after() {
        Some(new) => of_change(old, new, owner),
        None => of_deletion(old, owner, deployment),
    };
    if refusals.is_empty() {
        return Ok(());
    }
    Err(Refused(refusals))
}

pub(super) fn of_change(old: &Value, new: &Value, owner: &str) -> Vec<Denial> {
    let (crd, owner) = (name(old), owner.to_owned());
    let mut refusals = Vec::new();
    if object::label(new, names::BUNDLE_DEPLOYMENT) != Some(&owner) {
        refusals.push(Denial::Owner {
            crd: crd.clone(),
            owner: owner.clone(),
        });
    }
    if old.pointer("/spec/conversion") != new.pointer("/spec/conversion") {
        refusals.push(Denial::Conversion {
            crd: crd.clone(),
            owner: owner.clone(),
        });
    }
    let versions = lost_versions(old, new);
    if !versions.is_empty() {
        refusals.push(Denial::StoredVersions { crd, owner, versions });
    }
    refusals
}

/// One that is being deleted already is deleted again by the API server, once its objects are gone; and who deletes the
/// BundleDeployment may want to be rid of everything.
pub(super) fn of_deletion(old: &Value, owner: &str, deployment: &Value) -> Vec<Denial> {
    if is_terminating(old) || is_terminating(deployment) {
        return Vec::new();
    }
    vec![Denial::Deletion {
        crd: name(old),
        owner: owner.to_owned(),
    }]
}

/// The versions that objects are stored in and that `new` no longer has.
pub(super) fn lost_versions(old: &Value, new: &Value) -> Vec<String> {
    stored_versions(old)
        .into_iter()
        .filter(|stored| version(old, stored).is_some() && version(new, stored).is_none())
        .map(str::to_owned)
        .collect()
}

pub(super) fn is_claimed(crd: &Value, deployment: &Value) -> bool {
    let name = object::text(crd, "/metadata/name");
    is_converting(crd)
        || object::items(deployment, "/status/conversions")
            .iter()
            .any(|conversion| object::text(conversion, "/crd") == name)
}

pub(super) fn name(crd: &Value) -> String {
    object::text(crd, "/metadata/name").unwrap_or_default().to_owned()
}
