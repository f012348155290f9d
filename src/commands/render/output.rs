//! Output of rendered objects.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use serde_json::Value;
use windlass_object::ObjectKey;

use crate::terminal::yaml;

/// Standard output, or a folder.
#[derive(Debug)]
pub(super) struct Destination(Option<PathBuf>);

impl Destination {
    /// Returns a folder, or standard output.
    ///
    /// # Errors
    ///
    /// When the folder is not empty, since its files would look like a part of the output.
    pub(super) fn new(folder: Option<PathBuf>) -> anyhow::Result<Self> {
        if let Some(folder) = &folder {
            let is_empty = match fs::read_dir(folder) {
                Ok(mut entries) => entries.next().is_none(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => true,
                Err(error) => return Err(error).context(format!("cannot write to {}", folder.display())),
            };
            if !is_empty {
                bail!(
                    "{} is not empty: specify an empty or new directory",
                    folder.display()
                );
            }
        }
        Ok(Self(folder))
    }

    /// Writes all objects; into a folder all or none.
    ///
    /// # Errors
    ///
    /// When that fails.
    pub(super) fn write(&self, objects: &[Value]) -> anyhow::Result<()> {
        let documents: Vec<_> = objects
            .iter()
            .map(|object| Ok((file_name(object), yaml::document(object)?)))
            .collect::<anyhow::Result<_>>()?;
        let Some(folder) = &self.0 else {
            let texts: Vec<_> = documents.into_iter().map(|(_, text)| text).collect();
            let mut stdout = io::stdout().lock();
            return stdout
                .write_all(texts.join("---\n").as_bytes())
                .and_then(|()| stdout.flush())
                .context("cannot write to standard output");
        };
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let mut written = Vec::new();
        let result = write_files(folder, &documents, &mut written);
        if result.is_err() {
            // Ignored: a second error would not help, and partial files are useless.
            written.iter().for_each(|path| drop(fs::remove_file(path)));
        }
        result
    }
}

/// Writes each document into a hidden file first, so that no file is ever seen half-written.
fn write_files(
    folder: &Path,
    documents: &[(String, String)],
    written: &mut Vec<PathBuf>,
) -> anyhow::Result<()> {
    let mut moves = Vec::new();
    for (name, text) in documents {
        let partial = folder.join(format!(".{name}.partial"));
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&partial)
            .with_context(|| format!("cannot create {}", partial.display()))?;
        written.push(partial.clone());
        file.write_all(text.as_bytes())
            .with_context(|| format!("cannot write {}", partial.display()))?;
        moves.push((partial, folder.join(name)));
    }
    for (partial, path) in moves {
        fs::rename(&partial, &path).with_context(|| format!("cannot create {}", path.display()))?;
        written.push(path);
    }
    Ok(())
}

/// Returns `kind_namespace_name.yaml`, or `kind_name.yaml` for a cluster-scoped object, in lower case.
fn file_name(object: &Value) -> String {
    let parts = ObjectKey::from_object(object).map_or_else(Vec::new, |key| {
        [Some(key.kind), key.namespace, Some(key.name)]
            .into_iter()
            .flatten()
            .collect()
    });
    format!("{}.yaml", parts.join("_").to_lowercase())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "ns"}})
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn each_object_is_a_file() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("new/out");
        let role = json!({"apiVersion": "v1", "kind": "ClusterRole", "metadata": {"name": "system:A.b"}});
        let output = Destination::new(Some(folder.clone())).unwrap();
        output.write(&[object("a"), role]).unwrap();
        assert_eq!(
            names(&folder),
            ["clusterrole_system:a.b.yaml", "configmap_ns_a.yaml"]
        );
        let text = fs::read_to_string(folder.join("configmap_ns_a.yaml")).unwrap();
        assert_eq!(
            text,
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: ns\n"
        );
    }

    #[test]
    fn a_folder_that_is_not_empty_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let error = Destination::new(Some(folder.path().to_owned())).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("is not empty: specify an empty or new directory")
        );
        let error = Destination::new(Some(folder.path().join("file"))).unwrap_err();
        assert!(error.to_string().starts_with("cannot write to "));
    }

    #[test]
    fn a_failed_write_leaves_no_files() {
        let folder = tempfile::tempdir().unwrap();
        let output = Destination::new(Some(folder.path().to_owned())).unwrap();
        // The names differ only in case, so both have the same file.
        assert!(output.write(&[object("a"), object("b"), object("A")]).is_err());
        assert!(names(folder.path()).is_empty());
    }
}
