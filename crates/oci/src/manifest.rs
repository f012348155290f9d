//! Manifests and indexes (OCI image specification 1.1; Docker's image manifest version 2, schema 2).

use serde::{Deserialize, Serialize};

use crate::digest::ContentDigest;

/// Media type of an image's manifest.
pub const IMAGE_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of an index.
pub const IMAGE_INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Media type of an image's configuration.
pub const IMAGE_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// Media type of a layer that gzip has packed.
pub const LAYER_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";

/// What a registry is asked for in `Accept`.
pub const ACCEPTED: [&str; 4] = [IMAGE_INDEX, IMAGE_MANIFEST, DOCKER_INDEX, DOCKER_MANIFEST];

/// The most bytes of a manifest (distribution specification: registries should take 4 MiB at least).
pub const MANIFEST_BYTES: u64 = 4 << 20;

/// The most layers of an image: as many as overlay file systems mount.
pub const LAYERS: usize = 128;

/// What a digest is the digest of.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Its media type.
    pub media_type: String,
    /// Its digest.
    pub digest: ContentDigest,
    /// Its size in bytes.
    pub size: u64,
    /// What it runs on, in an index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
}

/// What an image runs on.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Platform {
    /// Architecture, as Go calls it.
    pub architecture: String,
    /// Operating system, as Go calls it.
    pub os: String,
}

/// The manifest of an image.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageManifest {
    /// 2.
    pub schema_version: u32,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The image's configuration.
    pub config: Descriptor,
    /// Its layers, from the lowest.
    pub layers: Vec<Descriptor>,
}

/// An index of manifests.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageIndex {
    /// 2.
    pub schema_version: u32,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// What it is an index of.
    pub manifests: Vec<Descriptor>,
}

/// What a registry answers when it is asked for an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManifestDocument {
    /// The manifest.
    Image(ImageManifest),
    /// An index, from which a manifest is chosen.
    Index(ImageIndex),
}

/// Why a manifest cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// It is not what its media type says.
    #[error("the manifest is not one: {0}")]
    Malformed(String),
    /// It is something else.
    #[error("the manifest has the media type {0:?}, which is not an image or an index")]
    MediaType(String),
    /// It claims to be another thing than the registry says.
    #[error("the manifest says that it is {said:?}, and the registry that it is {told:?}")]
    Conflict {
        /// What the manifest says.
        said: String,
        /// What the registry says.
        told: String,
    },
    /// It has too many layers.
    #[error("the image has {0} layers: the limit is {LAYERS}")]
    TooManyLayers(usize),
    /// No manifest of an index can be used.
    #[error("the index has no image for linux/{0} or linux/amd64")]
    Platform(String),
    /// Indexes lead to indexes.
    #[error("the index leads to indexes, and not to an image")]
    Nested,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outline {
    media_type: Option<String>,
    manifests: Option<serde::de::IgnoredAny>,
    layers: Option<serde::de::IgnoredAny>,
}

// === impl ManifestDocument ===

impl ManifestDocument {
    /// Reads a manifest or an index; `content_type` is what the registry says of it.
    ///
    /// # Errors
    ///
    /// What it is instead.
    pub fn parse(content: &[u8], content_type: Option<&str>) -> Result<Self, ManifestError> {
        let malformed = |error: serde_json::Error| ManifestError::Malformed(error.to_string());
        let outline: Outline = serde_json::from_slice(content).map_err(malformed)?;
        let told = content_type
            .and_then(|told| told.split(';').next())
            .map(str::trim)
            // What servers of files say.
            .filter(|told| {
                !matches!(
                    *told,
                    "" | "application/json" | "application/octet-stream" | "text/plain"
                )
            });
        let said = outline.media_type.as_deref();
        if let (Some(said), Some(told)) = (said, told)
            && said != told
        {
            return Err(ManifestError::Conflict {
                said: said.to_owned(),
                told: told.to_owned(),
            });
        }
        let is_index = match said.or(told) {
            Some(IMAGE_INDEX | DOCKER_INDEX) => true,
            Some(IMAGE_MANIFEST | DOCKER_MANIFEST) => false,
            Some(other) => return Err(ManifestError::MediaType(other.to_owned())),
            None => outline.manifests.is_some(),
        };
        // What is both could be read as either (CVE-2021-41190).
        if outline.manifests.is_some() && outline.layers.is_some() {
            return Err(ManifestError::Malformed(
                "it has both manifests and layers".to_owned(),
            ));
        }
        if is_index {
            return serde_json::from_slice(content)
                .map(Self::Index)
                .map_err(malformed);
        }
        let manifest: ImageManifest = serde_json::from_slice(content).map_err(malformed)?;
        if manifest.layers.len() > LAYERS {
            return Err(ManifestError::TooManyLayers(manifest.layers.len()));
        }
        Ok(Self::Image(manifest))
    }
}

// === impl ImageIndex ===

impl ImageIndex {
    /// The manifest for Linux on `architecture`, else on amd64, else the only one. What a bundle holds is the same on all.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn choose(&self, architecture: &str) -> Result<&Descriptor, ManifestError> {
        let is_image = |descriptor: &&Descriptor| {
            // Attestations of BuildKit stand beside images, for a platform that is unknown.
            let is_attestation = |platform: &Platform| platform.os == "unknown";
            ACCEPTED.contains(&descriptor.media_type.as_str())
                && !descriptor.platform.as_ref().is_some_and(is_attestation)
        };
        let images: Vec<_> = self.manifests.iter().filter(is_image).collect();
        let on = |wanted: &str| {
            images.iter().find(|image| {
                let platform = image.platform.as_ref();
                platform.is_some_and(|platform| platform.os == "linux" && platform.architecture == wanted)
            })
        };
        let only = match images.as_slice() {
            [only] => Some(only),
            _ => None,
        };
        let chosen = on(architecture).or_else(|| on("amd64")).or(only);
        chosen
            .copied()
            .ok_or_else(|| ManifestError::Platform(architecture.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn descriptor(media_type: &str, os: &str, architecture: &str) -> Value {
        json!({
            "mediaType": media_type,
            "digest": ContentDigest::compute(format!("{os}/{architecture}").as_bytes()),
            "size": 7,
            "platform": {"os": os, "architecture": architecture},
        })
    }

    fn index(manifests: &[Value]) -> ImageIndex {
        let text = json!({"schemaVersion": 2, "mediaType": IMAGE_INDEX, "manifests": manifests}).to_string();
        match ManifestDocument::parse(text.as_bytes(), Some(IMAGE_INDEX)).unwrap() {
            ManifestDocument::Index(index) => index,
            ManifestDocument::Image(_) => panic!("an index is no image"),
        }
    }

    #[test]
    fn the_image_for_this_machine_is_chosen_then_amd64_then_the_only_one() {
        let [amd64, arm64] = ["amd64", "arm64"].map(|name| descriptor(IMAGE_MANIFEST, "linux", name));
        let windows = descriptor(DOCKER_MANIFEST, "windows", "amd64");
        let attestation = descriptor(IMAGE_MANIFEST, "unknown", "unknown");
        let both = index(&[attestation.clone(), windows.clone(), amd64, arm64]);
        let chosen = |index: &ImageIndex, name| index.choose(name).map(|image| image.digest.clone());
        let digest = |name: &str| Ok(ContentDigest::compute(name.as_bytes()));
        assert_eq!(chosen(&both, "arm64"), digest("linux/arm64"));
        assert_eq!(chosen(&both, "s390x"), digest("linux/amd64"));
        assert_eq!(
            chosen(&index(&[windows, attestation]), "arm64"),
            digest("windows/amd64")
        );
        assert!(index(&[]).choose("amd64").is_err());
    }

    #[test]
    fn what_is_not_one_image_or_index_is_refused() {
        let read = |document: Value, told: Option<&str>| {
            ManifestDocument::parse(document.to_string().as_bytes(), told)
        };
        let image = json!({"schemaVersion": 2, "config": descriptor(IMAGE_CONFIG, "a", "b"), "layers": []});
        assert!(matches!(
            read(image.clone(), None),
            Ok(ManifestDocument::Image(_))
        ));
        assert!(matches!(
            read(image.clone(), Some("application/json")),
            Ok(ManifestDocument::Image(_))
        ));
        assert!(matches!(
            read(image.clone(), Some("text/html")),
            Err(ManifestError::MediaType(_))
        ));
        let mut other = image.clone();
        other["mediaType"] = json!(DOCKER_MANIFEST);
        assert!(matches!(
            read(other, Some(IMAGE_MANIFEST)),
            Err(ManifestError::Conflict { .. })
        ));
        let mut both = image.clone();
        both["manifests"] = json!([]);
        assert!(matches!(read(both, None), Err(ManifestError::Malformed(_))));
        let mut many = image;
        many["layers"] = json!(vec![descriptor(LAYER_GZIP, "a", "b"); LAYERS + 1]);
        assert_eq!(read(many, None), Err(ManifestError::TooManyLayers(LAYERS + 1)));
        assert!(ManifestDocument::parse(b"<html>", None).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(content in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = ManifestDocument::parse(&content, None);
        }
    }
}
