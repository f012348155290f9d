//! One recorded revision.

use windlass_api::{BundleRevision, BundleStatus, Source};

use super::{inventory::RevisionInventory, settings::InstallSettings};

/// One recorded revision: everything that is needed to install it again, whatever has become of its source.
#[derive(Clone, Debug, PartialEq)]
pub struct RevisionRecord {
    /// Its number; later revisions have higher ones.
    pub number: i64,
    /// Its bundle.
    pub bundle: BundleStatus,
    /// Where the bundle came from, without a digest that it had to have.
    pub source: Source,
    /// The image that it was pulled from, by its digest, if the source is one.
    pub image: Option<String>,
    /// What decides with the bundle what is rendered.
    pub settings: InstallSettings,
    /// The names of the ConfigMaps with the bytes of the bundle, in order.
    pub config_maps: Vec<String>,
    /// Whether it was armed completely, once.
    pub installed: bool,
    /// Its objects.
    pub inventory: RevisionInventory,
}

impl RevisionRecord {
    /// Whether it is of this bundle with these settings.
    pub fn is_of(&self, digest: &str, settings: &InstallSettings) -> bool {
        self.bundle.digest == digest && self.settings == *settings
    }

    /// What a status says of it.
    pub fn status(&self) -> BundleRevision {
        BundleRevision {
            revision: self.number,
            bundle: self.bundle.clone(),
            image: self.image.clone(),
        }
    }
}
