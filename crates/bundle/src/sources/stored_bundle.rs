//! A bundle as ConfigMaps that never change: the parts of its archive, named by what they hold.

use std::io;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use windlass_object::{names, text::hexadecimal};

use super::{
    config_maps::{PART, divide},
    pack::pack,
};
use crate::parse::Files;

/// How many ConfigMaps a BundleDeployment may name as its source.
pub const MOST_CONFIG_MAPS: usize = 128;

/// How many digits of the digest are in a name: enough that two bundles of one BundleDeployment never share it.
const DIGITS: usize = 16;

/// The archive of a bundle, to be stored in ConfigMaps. Their names tell what is in them, so that no name ever gets another
/// content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBundle {
    archive: Vec<u8>,
    digest: String,
}

// === impl StoredBundle ===

impl StoredBundle {
    /// The archive of `files`: the same files make the same ConfigMaps.
    ///
    /// # Errors
    ///
    /// When a name cannot be in an archive.
    pub fn from_files(files: &Files) -> io::Result<Self> {
        let archive = pack(files)?;
        let digest = hexadecimal(&Sha256::digest(&archive)[..DIGITS / 2]);
        Ok(Self { archive, digest })
    }

    /// How many bytes the archive has.
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
    fn what_is_stored_is_what_is_read() {
        let config_maps = stored("content").config_maps("name", "windlass-system");
        let archive = assemble(&config_maps).unwrap();
        assert_eq!(archive::load(archive.as_slice(), "-").unwrap(), files("content"));
    }

    #[test]
    fn names_tell_contents_apart() {
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
    fn a_part_never_changes_and_says_whose_it_is() {
        let config_map = &stored("a").config_maps("name", "windlass-system")[0];
        assert_eq!(config_map["immutable"], true);
        assert_eq!(
            config_map["metadata"]["labels"],
            json!({"windlass.dev/bundle-source": "name"})
        );
    }
}
