//! Clusters that were there before and are lent to scenarios, each to one at a time.

use std::{
    fs,
    ops::Deref,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use anyhow::Context;
use windlass_node::Network;

use crate::cluster::Cluster;

/// A cluster that was there before. It must be for scenarios alone.
#[derive(Clone, Debug)]
pub struct Existing {
    /// Its admin.
    pub kubeconfig: PathBuf,
    /// Where its API server looks for pods of this machine.
    pub pods: Network,
    /// The folder of its control plane, where `e2e/controlplane/with` started one.
    pub folder: Option<PathBuf>,
}

/// Those that are not lent at the moment.
#[derive(Debug)]
pub struct Lending(Mutex<Vec<Existing>>);

/// A cluster that is given back when this is dropped.
#[derive(Debug)]
pub struct Lent<'a> {
    cluster: Existing,
    to: &'a Lending,
}

// === impl Existing ===

impl Existing {
    /// The one whose folder this is.
    ///
    /// # Errors
    ///
    /// When it is no folder of a control plane.
    pub fn in_folder(folder: &Path) -> anyhow::Result<Self> {
        let file = folder.join("pods");
        let pods = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        Ok(Self {
            kubeconfig: folder.join("kubeconfig"),
            pods: pods.trim().parse().with_context(|| file.display().to_string())?,
            folder: Some(folder.to_owned()),
        })
    }

    /// Whether its programs may be killed and paused.
    pub fn may_be_killed(&self) -> bool {
        self.folder.is_some()
    }

    /// What it was asked, where that is known.
    pub fn audit_log(&self) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join("audit.log"))
    }

    /// It, to put a test bed on.
    ///
    /// # Errors
    ///
    /// When it cannot be asked what is in it.
    pub async fn cluster(&self) -> anyhow::Result<Cluster> {
        let cluster = Cluster::named(&self.kubeconfig, self.pods).await?;
        let processes = self.folder.as_ref().map(|folder| folder.join("running"));
        Ok(cluster.with_processes(processes))
    }
}

// === impl Lending ===

impl Lending {
    /// Nothing is lent yet.
    pub fn new(clusters: Vec<Existing>) -> Self {
        Self(Mutex::new(clusters))
    }

    /// Lends one.
    ///
    /// # Errors
    ///
    /// When all are lent.
    pub fn lend(&self) -> anyhow::Result<Lent<'_>> {
        let cluster = self.free().pop().context("every cluster is in use")?;
        Ok(Lent { cluster, to: self })
    }

    fn free(&self) -> MutexGuard<'_, Vec<Existing>> {
        // Each use is one push or pop, after which it is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Lent ===

impl Deref for Lent<'_> {
    type Target = Existing;

    fn deref(&self) -> &Existing {
        &self.cluster
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.to.free().push(self.cluster.clone());
    }
}
