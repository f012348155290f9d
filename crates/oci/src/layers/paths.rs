//! Paths in an image: separated by slashes, relative to its root.

/// The parent folders of a path, nearest first.
pub(super) fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.rmatch_indices('/').map(|(end, _)| &path[..end])
}

pub(super) fn join(folder: &str, file: &str) -> String {
    if folder.is_empty() {
        file.to_owned()
    } else {
        format!("{folder}/{file}")
    }
}

/// Resolves `path` relative to `folder`; `None` if it leaves the root.
pub(super) fn inside(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<_> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
