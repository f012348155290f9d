//! What is kept of the catalogs of images, by their digests, so that each is pulled once.

use std::{env, fs, path::PathBuf, process};

use catalog::ReadCatalog;
use oci::ImageReference;

/// Changes whenever something else is kept of catalogs.
const FORMAT: u32 = 1;

/// What is kept of an image, by its digest.
pub(super) fn find(image: &ImageReference) -> Option<ReadCatalog> {
    let content = fs::read(file(image)?).ok()?;
    // What somebody broke is as good as nothing.
    serde_json::from_slice(&content).ok()
}

/// Keeps what an image holds; where that fails, it is pulled again the next time.
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

/// Where caches are kept (XDG Base Directory specification).
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
