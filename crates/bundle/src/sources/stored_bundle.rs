//! A bundle in immutable ConfigMaps: the parts of its archive, named by content.

use std::io;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use windlass_object::{names, text::hexadecimal};

use super::{
    config_maps::{PART, divide},
    pack::pack,
};
use crate::parse::Files;

/// The maximum number of ConfigMaps in the source of a BundleDeployment.
pub const MOST_CONFIG_MAPS: usize = 128;

/// The number of digest digits in a name: enough that two bundles of one BundleDeployment never collide.
const DIGITS: usize = 16;

/// The archive of a bundle, for storage in ConfigMaps. Their names contain its digest, so that the content of
/// a name never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBundle {
    archive: Vec<u8>,
    digest: String,
}

impl StoredBundle {
    /// Packs `files`: the same files yield the same ConfigMaps.
    ///
    /// # Errors
    ///
    /// If an archive cannot contain a name.
    pub fn from_files(files: &Files) -> io::Result<Self> {
        let archive = pack(files)?;
        let digest = hexadecimal(&Sha256::digest(&archive)[..DIGITS / 2]);
        Ok(Self { archive, digest })
    }

    /// The size of the archive in bytes.
    pub fn size(&self) -> usize {
        self.archive.len()
    }

    /// The names of the ConfigMaps of a BundleDeployment, in order.
    pub fn names(&self, deployment: &str) -> impl Iterator<Item = String> {
        let parts = self.archive.len().div_ceil(PART);
        (0..parts).map(move |index| format!("{deployment}-{}-{index}", self.digest))
    }

    /// The ConfigMaps of a BundleDeployment in `namespace`, the operator's, in order.
    pub fn config_maps(&self, deployment: &str, namespace: &str) -> Vec<Value> {
        self.names(deployment)
            .zip(divide(&self.archive, PART))
            .map(|(name, content)| {
                json!({
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {
                        "name": name,
                        "namespace": namespace,
                        "labels": { names::BUNDLE_SOURCE: deployment },
                    },
                    "immutable": true,
                    "binaryData": content["binaryData"],
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::{archive, config_maps::assemble};

    fn files(content: &str) -> Files {
        Files::from([("manifests/csv.yaml".to_owned(), content.as_bytes().to_vec())])
    }

    fn stored(content: &str) -> StoredBundle {
        StoredBundle::from_files(&files(content)).unwrap()
    }

    #[test]
    fn stored_bundles_read_back() {
        let config_maps = stored("content").config_maps("name", "windlass-system");
        let archive = assemble(&config_maps).unwrap();
        assert_eq!(archive::load(archive.as_slice(), "-").unwrap(), files("content"));
    }

    #[test]
    fn names_depend_on_content() {
        let names = |content| stored(content).names("name").collect::<Vec<_>>();
        assert_eq!(names("a"), names("a"));
        assert_ne!(names("a"), names("b"));
        let name = names("a").remove(0);
        assert!(
            name.starts_with("name-") && name.ends_with("-0") && name.len() == 5 + DIGITS + 2,
            "{name}"
        );
    }

    #[test]
    fn parts_are_immutable_and_owned() {
        let config_map = &stored("a").config_maps("name", "windlass-system")[0];
        assert_eq!(config_map["immutable"], true);
        assert_eq!(
            config_map["metadata"]["labels"],
            json!({"windlass.dev/bundle-source": "name"})
        );
    }
}
