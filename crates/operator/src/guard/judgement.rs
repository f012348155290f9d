//! Which changes the guard denies.

use serde_json::Value;
use windlass_crd::{is_converting, stored_versions, version};
use windlass_object::{
    names,
    object::{self, is_terminating},
};

use super::{
    denial::{Denial, Refused},
    review::Review,
};

/// Checks whether the change in `review` is allowed. Only Windlass may delete a CustomResourceDefinition
/// whose conversion it arms, or change its owner, its conversion or the versions in which its objects are
/// stored.
///
/// `operators` are the users of Windlass's own processes, and `bundle_deployment` is the object that
/// [`Review::owner`] names, if it exists.
///
/// # Errors
///
/// When the change is denied.
pub fn judge(review: &Review, operators: &[&str], bundle_deployment: Option<&Value>) -> Result<(), Refused> {
    let (Some(old), Some(owner), Some(deployment)) = (review.old_object(), review.owner(), bundle_deployment)
    else {
        return Ok(());
    };
    let is_returning = object::annotation(deployment, names::RETURN_TO_OWNER).is_some();
    if operators.contains(&review.user()) || is_returning || !is_claimed(old, deployment) {
        return Ok(());
    }
    let refusals = match review.new_object() {
        Some(new) => change_denials(old, new, owner),
        None => deletion_denials(old, owner, deployment),
    };
    if refusals.is_empty() {
        return Ok(());
    }
    Err(Refused(refusals))
}

/// Checks whether a BundleDeployment may be deleted while its CRDs `in_use` need their conversion.
///
/// # Errors
///
/// When the deletion is denied.
pub fn judge_removal(review: &Review, in_use: &[&str]) -> Result<(), Refused> {
    let Some(before) = review.old_object() else {
        return Ok(());
    };
    if in_use.is_empty() || review.new_object().is_some() || is_terminating(before) {
        return Ok(());
    }
    Err(Refused(vec![Denial::Removal {
        owner: name(before),
        crds: in_use.iter().map(|crd| (*crd).to_owned()).collect(),
    }]))
}

pub(super) fn change_denials(old: &Value, new: &Value, owner: &str) -> Vec<Denial> {
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

/// A terminating CRD is allowed: the API server deletes it again once its objects are gone. So is any CRD of
/// a terminating BundleDeployment.
pub(super) fn deletion_denials(old: &Value, owner: &str, deployment: &Value) -> Vec<Denial> {
    if is_terminating(old) || is_terminating(deployment) {
        return Vec::new();
    }
    vec![Denial::Deletion {
        crd: name(old),
        owner: owner.to_owned(),
    }]
}

/// Returns the versions in which objects are stored and that `new` no longer has.
pub(super) fn lost_versions(old: &Value, new: &Value) -> Vec<String> {
    stored_versions(old)
        .into_iter()
        .filter(|stored| version(old, stored).is_some() && version(new, stored).is_none())
        .map(str::to_owned)
        .collect()
}

pub(super) fn is_claimed(crd: &Value, deployment: &Value) -> bool {
    if object::text(deployment, "/spec/conversion") == Some("External") {
        return false;
    }
    let name = object::text(crd, "/metadata/name");
    is_converting(crd)
        || object::items(deployment, "/status/conversions")
            .iter()
            .any(|conversion| object::text(conversion, "/crd") == name)
}

pub(super) fn name(crd: &Value) -> String {
    object::text(crd, "/metadata/name").unwrap_or_default().to_owned()
}
