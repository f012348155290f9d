//! A folder that is there completely, or not at all.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use windlass_bundle::Files;

/// Writes files into a folder that is empty or absent.
///
/// # Errors
///
/// When it is something else, or cannot be written; what was written goes again.
pub(super) fn write(folder: &Path, files: &Files) -> anyhow::Result<()> {
    ensure_empty(folder)?;
    let partial = beside(folder)?;
    let written = write_all(&partial, files).and_then(|()| fs::rename(&partial, folder));
    if written.is_err() {
        // What cannot be removed was not written either, or says so by its name.
        let _ = fs::remove_dir_all(&partial);
    }
    written.with_context(|| format!("cannot write to {}", folder.display()))
}

/// # Errors
///
/// When `folder` is there and not an empty folder.
pub(super) fn ensure_empty(folder: &Path) -> anyhow::Result<()> {
    match fs::read_dir(folder) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                bail!(
                    "{} is not empty: specify an empty or new directory",
                    folder.display()
                );
            }
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot write to {}", folder.display())),
    }
}

/// A name in the same folder, where a rename moves nothing.
fn beside(folder: &Path) -> anyhow::Result<PathBuf> {
    let Some(name) = folder.file_name() else {
        bail!(
            "{} has no name: specify a directory by its name",
            folder.display()
        );
    };
    let mut partial = name.to_owned();
    partial.push(format!(".partial-{}", std::process::id()));
    Ok(folder.with_file_name(partial))
}

fn write_all(root: &Path, files: &Files) -> io::Result<()> {
    fs::create_dir(root)?;
    for (path, content) in files {
        let file = root.join(path);
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(file, content)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn a_folder_is_written_completely_or_not_at_all() {
        let root = tempfile::tempdir().unwrap();
        let files = Files::from([("manifests/a.yaml".to_owned(), b"a".to_vec())]);
        let folder = root.path().join("bundle");
        write(&folder, &files).unwrap();
        assert_eq!(fs::read(folder.join("manifests/a.yaml")).unwrap(), b"a");
        let error = write(&folder, &files).unwrap_err().to_string();
        assert!(error.contains("is not empty"), "{error}");

        // A file in the place of a folder.
        let broken = Files::from([("a".to_owned(), vec![]), ("a/b".to_owned(), vec![])]);
        write(&root.path().join("broken"), &broken).unwrap_err();
        assert_eq!(names(root.path()), ["bundle"]);

        let empty = root.path().join("empty");
        fs::create_dir(&empty).unwrap();
        write(&empty, &files).unwrap();
        assert_eq!(names(&empty), ["manifests"]);
    }
}
