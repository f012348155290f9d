//! Any response is a manifest, an index or an error. Manifests and indexes survive serialization, and an
//! image chosen from an index is in it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oci::{
    ManifestDocument,
    manifest::{ACCEPTED, LAYERS},
};

fuzz_target!(|bytes: &[u8]| {
    let Some((reported, content)) = bytes.split_first() else {
        return;
    };
    let reported = ACCEPTED
        .get(usize::from(*reported) % (ACCEPTED.len() + 1))
        .copied();
    let Ok(document) = ManifestDocument::parse(content, reported) else {
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
    let written = written.expect("the manifest is JSON");
    assert_eq!(ManifestDocument::parse(&written, reported), Ok(document));
});
