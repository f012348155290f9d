//! All-or-nothing writes of a folder.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use windlass_bundle::Files;

/// Writes files into an empty or new folder.
///
/// # Errors
///
/// When it is not empty, or cannot be written; written files are removed again.
pub(super) fn write(folder: &Path, files: &Files) -> anyhow::Result<()> {
    ensure_empty(folder)?;
    let partial = temporary_sibling(folder)?;
    let written = write_all(&partial, files).and_then(|()| fs::rename(&partial, folder));
    if written.is_err() {
        // If the temporary folder cannot be removed, its name shows that it is temporary.
        let _ = fs::remove_dir_all(&partial);
    }
    written.with_context(|| format!("cannot write to {}", folder.display()))
}

/// Checks that `folder` is empty or does not exist.
///
/// # Errors
///
/// When `folder` contains files.
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

/// Returns a name in the same folder, so that a rename stays in one file system.
fn temporary_sibling(folder: &Path) -> anyhow::Result<PathBuf> {
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

        // A file instead of a folder.
        let broken = Files::from([("a".to_owned(), vec![]), ("a/b".to_owned(), vec![])]);
        write(&root.path().join("broken"), &broken).unwrap_err();
        assert_eq!(names(root.path()), ["bundle"]);

        let empty = root.path().join("empty");
        fs::create_dir(&empty).unwrap();
        write(&empty, &files).unwrap();
        assert_eq!(names(&empty), ["manifests"]);
    }
}
