//! The messages of denied changes, which state what to do instead.

use thiserror::Error;
use windlass_object::names;

/// One reason to deny a change, with a message for the user who requested it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum Denial {
    /// The change would remove or replace the owner label of the CRD.
    #[error(
        "The label {} marks {crd} as owned by the BundleDeployment {owner} and must not be changed. To hand over the \
         CustomResourceDefinition, delete the BundleDeployment: the CustomResourceDefinition and its objects are kept, \
         and the label is removed.",
        names::BUNDLE_DEPLOYMENT
    )]
    Owner { crd: String, owner: String },
    /// The change would replace the conversion.
    #[error(
        "spec.conversion of {crd} is managed by the BundleDeployment {owner} and must not be changed, or objects are lost \
         and requests fail. To change the conversion, update the BundleDeployment to another bundle; to stop converting, \
         delete it: Windlass removes the conversion as soon as no object needs it."
    )]
    Conversion { crd: String, owner: String },
    /// The change would remove versions in which objects are stored. The API server already rejects this with
    /// 422 before it calls webhooks (`ValidateCustomResourceDefinitionStoredVersions`); this is a second line
    /// of defense.
    #[error(
        "Objects of {crd} are stored in {} and could no longer be read: keep all of status.storedVersions in \
         spec.versions. To drop a version, update the BundleDeployment {owner} to a bundle without it: the version is \
         removed when no object is stored in it.",
        versions.join(", ")
    )]
    StoredVersions {
        crd: String,
        owner: String,
        versions: Vec<String>,
    },
    /// The removal could not finish, and a deletion cannot be undone.
    #[error(
        "The BundleDeployment {owner} cannot be deleted yet, and a deletion cannot be undone: {} serve several versions and have stored objects, which would be lost without their conversion. First set spec.deletionPolicy to KeepStoredVersion, to rewrite the objects and serve only the version in which they are stored, or to DeleteCRDs, to delete them; or delete the objects.",
        crds.join(", ")
    )]
    Removal {
        owner: String,
        /// CustomResourceDefinitions of the BundleDeployment that need their conversion.
        crds: Vec<String>,
    },
    /// The deletion of the CRD would delete all its objects.
    #[error(
        "Deleting {crd} would delete all its objects, which the BundleDeployment {owner} serves. Delete the \
         BundleDeployment first: the CustomResourceDefinition and its objects are kept, and can then be deleted."
    )]
    Deletion { crd: String, owner: String },
}

/// All reasons why a change is denied.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))]
pub struct Refused(pub Vec<Denial>);
