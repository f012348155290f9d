//! Manifests and indexes (OCI image specification 1.1; Docker's image manifest version 2, schema 2).

use serde::{Deserialize, Serialize};

use crate::digest::ContentDigest;

/// Media type of an image's manifest.
pub const IMAGE_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of an index.
pub const IMAGE_INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Media type of an image's configuration.
pub const IMAGE_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// Media type of a layer without compression.
pub const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
/// Media type of a layer compressed with gzip.
pub const LAYER_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";

/// The `Accept` header of a request for a manifest.
pub const ACCEPTED: [&str; 4] = [IMAGE_INDEX, IMAGE_MANIFEST, DOCKER_INDEX, DOCKER_MANIFEST];

/// The maximum size of a manifest in bytes (distribution specification: registries should accept at least 4
/// MiB).
pub const MANIFEST_BYTES: u64 = 4 << 20;

/// The maximum number of layers: the limit of overlay file systems.
pub const LAYERS: usize = 128;

/// A reference to content by digest.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Media type of the content.
    pub media_type: String,
    /// Digest of the content.
    pub digest: ContentDigest,
    /// The size in bytes.
    pub size: u64,
    /// The platform, in an index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
}

/// The platform of an image.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Platform {
    /// Architecture, in Go's terms.
    pub architecture: String,
    /// Operating system, in Go's terms.
    pub os: String,
}

/// The manifest of an image: references to its configuration and its layers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageManifest {
    /// Always 2.
    pub schema_version: u32,
    /// Media type of the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The image's configuration.
    pub config: Descriptor,
    /// The layers, lowest first.
    pub layers: Vec<Descriptor>,
}

/// An image index: the manifests of one image, by platform.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageIndex {
    /// Always 2.
    pub schema_version: u32,
    /// Media type of the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// One manifest per platform.
    pub manifests: Vec<Descriptor>,
}

/// A manifest or an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManifestDocument {
    /// The manifest of one image.
    Image(ImageManifest),
    /// An image index: the manifests of one image, by platform.
    Index(ImageIndex),
}

/// Why a manifest is unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// The content does not parse as its media type.
    #[error("the manifest is invalid: {0}")]
    Malformed(String),
    /// The media type is unsupported.
    #[error("the manifest has the media type {0:?}, which is not an image or an index")]
    MediaType(String),
    /// The media types in the manifest and in the response differ.
    #[error("the manifest has the media type {declared:?}, but the registry reports {reported:?}")]
    Conflict {
        /// The media type in the manifest.
        declared: String,
        /// The media type in the response.
        reported: String,
    },
    /// The image has too many layers.
    #[error("the image has {0} layers: the limit is {LAYERS}")]
    TooManyLayers(usize),
    /// No manifest of an index fits the platform.
    #[error("the index has no image for linux/{0} or linux/amd64")]
    Platform(String),
    /// The nesting of indexes is too deep.
    #[error("the index contains only other indexes, and no image")]
    Nested,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outline {
    media_type: Option<String>,
    manifests: Option<serde::de::IgnoredAny>,
    layers: Option<serde::de::IgnoredAny>,
}

impl ManifestDocument {
    /// Parses a manifest or an index; `content_type` is the media type in the response.
    ///
    /// # Errors
    ///
    /// If it is neither.
    pub fn parse(content: &[u8], content_type: Option<&str>) -> Result<Self, ManifestError> {
        let malformed = |error: serde_json::Error| ManifestError::Malformed(error.to_string());
        let outline: Outline = serde_json::from_slice(content).map_err(malformed)?;
        let reported = content_type
            .and_then(|reported| reported.split(';').next())
            .map(str::trim)
            // Content types of plain file servers.
            .filter(|reported| {
                !matches!(
                    *reported,
                    "" | "application/json" | "application/octet-stream" | "text/plain"
                )
            });
        let declared = outline.media_type.as_deref();
        if let (Some(declared), Some(reported)) = (declared, reported)
            && declared != reported
        {
            return Err(ManifestError::Conflict {
                declared: declared.to_owned(),
                reported: reported.to_owned(),
            });
        }
        let is_index = match declared.or(reported) {
            Some(IMAGE_INDEX | DOCKER_INDEX) => true,
            Some(IMAGE_MANIFEST | DOCKER_MANIFEST) => false,
            Some(other) => return Err(ManifestError::MediaType(other.to_owned())),
            None => outline.manifests.is_some(),
        };
        // Such a document could be parsed as either (CVE-2021-41190).
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

impl ImageIndex {
    /// Chooses the manifest for Linux on `architecture`, else on amd64, else the only one. A bundle is the
    /// same on all platforms.
    ///
    /// # Errors
    ///
    /// If no manifest fits.
    pub fn choose(&self, architecture: &str) -> Result<&Descriptor, ManifestError> {
        let is_image = |descriptor: &&Descriptor| {
            // BuildKit adds attestations for an unknown platform.
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
            ManifestDocument::Image(_) => panic!("an index is not an image"),
        }
    }

    #[test]
    fn the_architecture_then_amd64_then_the_only_image_is_chosen() {
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
    fn ambiguous_and_unknown_manifests_are_refused() {
        let read = |document: Value, reported: Option<&str>| {
            ManifestDocument::parse(document.to_string().as_bytes(), reported)
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
        fn arbitrary_bytes_never_panic(content in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = ManifestDocument::parse(&content, None);
        }
    }
}
