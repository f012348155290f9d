//! Clusters that were there before, which scenarios borrow, each by one at a time.

use std::{
    fs,
    ops::Deref,
    path::{Path, PathBuf},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use anyhow::Context;
use windlass_node::Network;

use crate::cluster::BackingCluster;

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

/// Clusters, each of which has one user at a time.
#[derive(Debug)]
pub struct ClusterPool {
    stock: Mutex<Stock>,
    changed: Condvar,
}

#[derive(Debug)]
struct Stock {
    free: Vec<Existing>,
    borrowed: usize,
}

/// A cluster that has a user. What is not given back is never borrowed again.
#[derive(Debug)]
pub struct BorrowedCluster<'a> {
    cluster: Existing,
    from: &'a ClusterPool,
    is_clean: bool,
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

    /// It, to put a test cluster on.
    ///
    /// # Errors
    ///
    /// When it cannot be asked what is in it.
    pub async fn cluster(&self) -> anyhow::Result<BackingCluster> {
        let cluster = BackingCluster::named(&self.kubeconfig, self.pods).await?;
        let processes = self.folder.as_ref().map(|folder| folder.join("running"));
        Ok(cluster.with_processes(processes))
    }
}

// === impl ClusterPool ===

impl ClusterPool {
    /// Nothing is borrowed yet.
    pub fn new(clusters: Vec<Existing>) -> Self {
        Self {
            stock: Mutex::new(Stock {
                free: clusters,
                borrowed: 0,
            }),
            changed: Condvar::new(),
        }
    }

    /// Borrows a cluster, as soon as one is free.
    ///
    /// # Errors
    ///
    /// When none is left that was given back.
    pub fn borrow(&self) -> anyhow::Result<BorrowedCluster<'_>> {
        let mut stock = self
            .changed
            .wait_while(self.stock(), |stock| stock.free.is_empty() && stock.borrowed > 0)
            .unwrap_or_else(PoisonError::into_inner);
        let cluster = stock
            .free
            .pop()
            .context("an earlier scenario left something behind on each of the clusters")?;
        stock.borrowed += 1;
        Ok(BorrowedCluster {
            cluster,
            from: self,
            is_clean: false,
        })
    }

    fn stock(&self) -> MutexGuard<'_, Stock> {
        // Nothing that uses it can fail half-way.
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl BorrowedCluster ===

impl BorrowedCluster<'_> {
    /// Gives it back: it is as it was before.
    pub fn give_back(mut self) {
        self.is_clean = true;
    }
}

impl Deref for BorrowedCluster<'_> {
    type Target = Existing;

    fn deref(&self) -> &Existing {
        &self.cluster
    }
}

impl Drop for BorrowedCluster<'_> {
    fn drop(&mut self) {
        let mut stock = self.from.stock();
        stock.borrowed -= 1;
        if self.is_clean {
            stock.free.push(self.cluster.clone());
        }
        drop(stock);
        self.from.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(name: &str) -> Existing {
        Existing {
            kubeconfig: name.into(),
            pods: "198.18.0.0/16".parse().unwrap(),
            folder: None,
        }
    }

    #[test]
    fn what_is_not_given_back_is_never_borrowed_again() {
        let pool = ClusterPool::new(vec![cluster("one"), cluster("other")]);
        let other = pool.borrow().unwrap();
        assert_eq!(other.kubeconfig, Path::new("other"));
        drop(other);
        for _ in 0..3 {
            let one = pool.borrow().unwrap();
            assert_eq!(one.kubeconfig, Path::new("one"));
            one.give_back();
        }
        drop(pool.borrow().unwrap());
        pool.borrow().unwrap_err();
    }

    #[test]
    fn whoever_comes_later_waits() {
        let pool = ClusterPool::new(vec![cluster("one")]);
        let one = pool.borrow().unwrap();
        std::thread::scope(|scope| {
            let later = scope.spawn(|| pool.borrow().map(BorrowedCluster::give_back));
            one.give_back();
            later.join().unwrap().unwrap();
        });
    }
}
