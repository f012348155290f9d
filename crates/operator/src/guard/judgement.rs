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

/// Whether the change in `review` may be made.
///
/// `operators` are the users that Windlass itself is, and `bundle_deployment` the object that [`Review::owner`] names, if
/// there is one.
///
/// # Errors
///
/// When it may not.
pub fn judge(review: &Review, operators: &[&str], bundle_deployment: Option<&Value>) -> Result<(), Refused> {
    let (Some(old), Some(owner), Some(deployment)) = (review.before(), review.owner(), bundle_deployment)
    else {
        return Ok(());
    };
    let is_returning = object::annotation(deployment, names::RETURNING).is_some();
    if operators.contains(&review.user()) || is_returning || !is_claimed(old, deployment) {
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

/// Whether a BundleDeployment may be deleted whose CRDs `in_use` could not do without it.
///
/// # Errors
///
/// When it may not.
pub fn judge_removal(review: &Review, in_use: &[&str]) -> Result<(), Refused> {
    let Some(before) = review.before() else {
        return Ok(());
    };
    if in_use.is_empty() || review.after().is_some() || is_terminating(before) {
        return Ok(());
    }
    Err(Refused(vec![Denial::Removal {
        owner: name(before),
        crds: in_use.iter().map(|crd| (*crd).to_owned()).collect(),
    }]))
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
