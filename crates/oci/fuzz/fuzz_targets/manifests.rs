//! Whatever a registry answers is a manifest, an index or refused; what is read is written so that it reads alike; and of an index an
//! image is chosen that is in it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oci::{
    ManifestDocument,
    manifest::{ACCEPTED, LAYERS},
};

fuzz_target!(|bytes: &[u8]| {
    let Some((told, content)) = bytes.split_first() else {
        return;
    };
    let told = ACCEPTED.get(usize::from(*told) % (ACCEPTED.len() + 1)).copied();
    let Ok(document) = ManifestDocument::parse(content, told) else {
        return;
    };
    let written = match &document {
        ManifestDocument::Image(manifest) => {
            assert!(manifest.layers.len() <= LAYERS);
            serde_json::to_vec(manifest)
        }
        ManifestDocument::Index(index) => {
            if let Ok(chosen) = index.choose("arm64") {
                assert!(index.manifests.contains(chosen));
                assert!(ACCEPTED.contains(&chosen.media_type.as_str()));
                let platform = chosen.platform.as_ref();
                assert!(platform.is_none_or(|platform| platform.os != "unknown"));
            }
            serde_json::to_vec(index)
        }
    };
    let written = written.expect("it is JSON");
    assert_eq!(ManifestDocument::parse(&written, told), Ok(document));
});
