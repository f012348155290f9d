//! A layer of any bytes, with any compression, is unpacked within the limits or rejected.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oci::ImageFiles;

mod checks;

const MEDIA_TYPES: [&str; 4] = [
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.oci.image.layer.v1.tar+zstd",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
];

fuzz_target!(|bytes: &[u8]| {
    let Some((packing, content)) = bytes.split_first() else {
        return;
    };
    let media_type = MEDIA_TYPES[usize::from(*packing) % MEDIA_TYPES.len()];
    let mut files = ImageFiles::new(&checks::FOLDERS, checks::LIMITS);
    if files.add("the layer", media_type, content).is_ok()
        && let Ok(files) = files.into_files()
    {
        checks::check(&files);
    }
});
