//! What the guard denies, in sentences that say what to do instead.

use thiserror::Error;
use windlass_object::names;

/// One reason to refuse a change: sentences for whoever tried to make it.
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
    /// The BundleDeployment would never be gone, and could not be kept either.
    #[error(
        "The BundleDeployment {owner} cannot be removed as it is, and a deletion cannot be taken back: {} serve several \
         versions and have stored objects, which would be lost without their conversion. First set spec.deletionPolicy to \
         KeepStoredVersion, to rewrite the objects and serve only the version in which they are stored, or to DeleteCRDs, to \
         delete them; or delete the objects.",
        crds.join(", ")
    )]
    Removal {
        /// The BundleDeployment.
        owner: String,
        /// Its CustomResourceDefinitions that need their conversion.
        crds: Vec<String>,
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

/// Why a change is refused: every reason, each with the way out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))]
pub struct Refused(pub Vec<Denial>);
