//! A cache of catalog images by digest, so that each is pulled once.

use std::{env, fs, path::PathBuf, process};

use catalog::ReadCatalog;
use oci::ImageReference;

/// Increased whenever the cached format changes.
const FORMAT: u32 = 1;

/// Returns the cached content of an image.
pub(super) fn find(image: &ImageReference) -> Option<ReadCatalog> {
    let content = fs::read(file(image)?).ok()?;
    // A damaged file counts as missing.
    serde_json::from_slice(&content).ok()
}

/// Caches the content of an image. Failures are ignored: the image is then pulled again.
pub(super) fn store(image: &ImageReference, read: &ReadCatalog) {
    let (Some(file), Ok(content)) = (file(image), serde_json::to_vec(read)) else {
        return;
    };
    let part = file.with_extension(format!("{}.part", process::id()));
    let stored = file
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(&part, content))
        .and_then(|()| fs::rename(&part, &file));
    if stored.is_err() {
        let _ = fs::remove_file(&part);
    }
}

/// Returns the cache file of an image (XDG Base Directory specification).
fn file(image: &ImageReference) -> Option<PathBuf> {
    let digest = image.digest.as_ref()?;
    let named = |variable| {
        env::var_os(variable)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let folder = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")))?;
    let name = format!("{}-{FORMAT}.json", digest.as_str().replace(':', "-"));
    Some(folder.join("windlass/catalogs").join(name))
}
