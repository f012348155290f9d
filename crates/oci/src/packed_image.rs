//! Packs files into an image with one layer.

use std::{collections::BTreeMap, io};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};

use crate::{
    digest::ContentDigest,
    manifest::{Descriptor, IMAGE_CONFIG, IMAGE_MANIFEST, ImageManifest, LAYER, LAYER_GZIP},
};

/// An image with one layer. The build is reproducible: the digest depends on files and configuration only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedImage {
    manifest: Bytes,
    config: Bytes,
    layer: Bytes,
}

/// The layer of a [`PackedImage`], which several images can share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedLayer {
    /// The digest of the layer without compression.
    diff_id: ContentDigest,
    media_type: &'static str,
    content: Bytes,
}

impl PackedLayer {
    /// Packs files by path and compresses them.
    ///
    /// # Errors
    ///
    /// If a tar archive cannot contain a path.
    pub fn compressed(files: &BTreeMap<String, Vec<u8>>) -> io::Result<Self> {
        let archive = archive(files, 0o644)?;
        // The gzip header contains neither name nor time.
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        io::Write::write_all(&mut encoder, &archive)?;
        Ok(Self {
            diff_id: ContentDigest::compute(&archive),
            media_type: LAYER_GZIP,
            content: encoder.finish()?.into(),
        })
    }

    /// Packs programs and their libraries by path, without compression: registries of tests are on the same
    /// machine.
    ///
    /// # Errors
    ///
    /// If a tar archive cannot contain a path.
    pub fn executable(files: &BTreeMap<String, Vec<u8>>) -> io::Result<Self> {
        let archive = archive(files, 0o755)?;
        Ok(Self {
            diff_id: ContentDigest::compute(&archive),
            media_type: LAYER,
            content: archive.into(),
        })
    }
}

impl PackedImage {
    /// Packs files by path for linux/amd64. The image has these labels.
    ///
    /// # Errors
    ///
    /// If a tar archive cannot contain a path.
    pub fn new(files: &BTreeMap<String, Vec<u8>>, labels: &BTreeMap<String, String>) -> io::Result<Self> {
        let layer = PackedLayer::compressed(files)?;
        Self::with_config(&layer, &json!({ "Labels": labels }))
    }

    /// Creates an image for linux/amd64. `config` is the object of that name in the image's configuration,
    /// such as `{"Entrypoint": ["/program"], "User": "65532"}`.
    ///
    /// # Errors
    ///
    /// If the manifest cannot be serialized.
    pub fn with_config(layer: &PackedLayer, config: &Value) -> io::Result<Self> {
        let config = json!({
            "architecture": "amd64",
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [layer.diff_id]},
        })
        .to_string()
        .into_bytes();
        let manifest = ImageManifest {
            schema_version: 2,
            media_type: Some(IMAGE_MANIFEST.to_owned()),
            config: descriptor(IMAGE_CONFIG, &config),
            layers: vec![descriptor(layer.media_type, &layer.content)],
        };
        Ok(Self {
            manifest: serde_json::to_vec(&manifest)?.into(),
            config: config.into(),
            layer: layer.content.clone(),
        })
    }

    /// The manifest, of type [`IMAGE_MANIFEST`].
    pub fn manifest(&self) -> &Bytes {
        &self.manifest
    }

    /// The blobs in the manifest: the layer and the configuration.
    pub fn blobs(&self) -> [&Bytes; 2] {
        [&self.layer, &self.config]
    }
}

fn descriptor(media_type: &str, content: &[u8]) -> Descriptor {
    Descriptor {
        media_type: media_type.to_owned(),
        digest: ContentDigest::compute(content),
        size: content.len() as u64,
        platform: None,
    }
}

fn archive(files: &BTreeMap<String, Vec<u8>>, mode: u32) -> io::Result<Vec<u8>> {
    let mut archive = Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(mode);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(content.len() as u64);
        archive.append_data(&mut header, path, content.as_slice())?;
    }
    archive.into_inner()
}

#[cfg(test)]
mod tests {
    use proptest::{collection, prelude::*};

    use super::*;
    use crate::{ImageFiles, LayerLimits, ManifestDocument};

    proptest! {
        #[test]
        fn packed_images_unpack_again(
            contents in collection::btree_map("[a-z]{1,120}", collection::vec(any::<u8>(), 0..2000), 0..5),
        ) {
            let files: BTreeMap<_, _> = contents
                .into_iter()
                .map(|(name, content)| (format!("manifests/{name}"), content))
                .collect();
            let packed = PackedImage::new(&files, &BTreeMap::new()).unwrap();
            prop_assert_eq!(&packed, &PackedImage::new(&files, &BTreeMap::new()).unwrap());
            let document = ManifestDocument::parse(packed.manifest(), Some(IMAGE_MANIFEST)).unwrap();
            let ManifestDocument::Image(manifest) = document else {
                panic!("it is an index");
            };
            let [layer, config] = packed.blobs();
            prop_assert_eq!(&manifest.layers[0].digest, &ContentDigest::compute(layer));
            prop_assert_eq!(&manifest.config.digest, &ContentDigest::compute(config));
            let limits = LayerLimits { bytes: 1 << 20, entries: 10 };
            let mut unpacked = ImageFiles::new(&["manifests"], limits);
            unpacked.add("0", &manifest.layers[0].media_type, layer).unwrap();
            prop_assert_eq!(unpacked.into_files().unwrap(), files);
        }
    }

    #[test]
    fn paths_outside_of_the_image_are_refused() {
        for path in ["../a", "/a", ""] {
            let files = BTreeMap::from([(path.to_owned(), vec![])]);
            PackedImage::new(&files, &BTreeMap::new()).unwrap_err();
        }
    }
}
