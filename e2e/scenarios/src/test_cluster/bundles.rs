//! The operator's bundle folder.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;

use super::cluster::TestCluster;
use crate::sample;

impl TestCluster {
    /// Copies a sample bundle of the repository into the operator's bundle folder.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be copied.
    pub fn bundle(&self, name: &str) -> anyhow::Result<PathBuf> {
        self.add_bundle(&sample::bundle(name), name)
    }

    /// Copies a bundle into the operator's bundle folder, as `name`.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be copied.
    pub fn add_bundle(&self, source: &Path, name: &str) -> anyhow::Result<PathBuf> {
        let target = self.operator.bundle_dir.join(name);
        copy(source, &target).with_context(|| format!("copying {}", source.display()))?;
        Ok(target)
    }

    /// Replaces text in the manifests of a bundle.
    ///
    /// # Errors
    ///
    /// Fails if no manifest contains the text.
    pub fn edit(&self, bundle: &Path, from: &str, to: &str) -> anyhow::Result<()> {
        let mut found = false;
        for entry in fs::read_dir(bundle.join("manifests"))? {
            let path = entry?.path();
            let text = fs::read_to_string(&path)?;
            if text.contains(from) {
                found = true;
                fs::write(&path, text.replace(from, to))?;
            }
        }
        anyhow::ensure!(found, "no manifest of {} contains {from:?}", bundle.display());
        Ok(())
    }
}

/// Copies a folder recursively.
pub(crate) fn copy(source: &Path, target: &Path) -> std::io::Result<()> {
    fs::create_dir_all(target)?;
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        let to = target.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}
