//! Existing clusters that scenarios borrow, one scenario at a time.

use std::{
    fs,
    ops::Deref,
    path::{Path, PathBuf},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use anyhow::Context;

use crate::cluster::{BackingCluster, Pods};

/// An existing cluster, dedicated to scenarios.
#[derive(Clone, Debug)]
pub struct Existing {
    /// The kubeconfig of its admin.
    pub kubeconfig: PathBuf,
    /// What runs its pods.
    pub pods: Pods,
    /// The folder of its control plane, if `e2e/cluster/run` started it.
    pub folder: Option<PathBuf>,
}

/// Clusters that each have one user at a time.
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

/// A borrowed cluster. A cluster that is not given back is never borrowed again.
#[derive(Debug)]
pub struct BorrowedCluster<'a> {
    cluster: Existing,
    from: &'a ClusterPool,
    is_clean: bool,
}

impl Existing {
    /// Finds the cluster of a control plane's folder.
    ///
    /// # Errors
    ///
    /// Fails if the folder does not belong to a control plane.
    pub fn in_folder(folder: &Path) -> anyhow::Result<Self> {
        let read = |name: &str| {
            let file = folder.join(name);
            fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))
        };
        let pods = match read("registry") {
            Ok(registry) => Pods::Nodes(registry.trim().parse()?),
            Err(_) => Pods::Simulated(read("pods")?.trim().parse()?),
        };
        Ok(Self {
            kubeconfig: folder.join("kubeconfig"),
            pods,
            folder: Some(folder.to_owned()),
        })
    }

    /// Whether scenarios may kill and pause its programs.
    pub fn may_be_killed(&self) -> bool {
        self.folder.is_some()
    }

    /// The audit log, if there is one.
    pub fn audit_log(&self) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join("audit.log"))
    }

    /// Prepares the cluster for a test cluster.
    ///
    /// # Errors
    ///
    /// Fails if its objects cannot be listed.
    pub async fn cluster(&self) -> anyhow::Result<BackingCluster> {
        let cluster = BackingCluster::named(&self.kubeconfig, self.pods).await?;
        let processes = self.folder.as_ref().map(|folder| folder.join("running"));
        Ok(cluster.with_processes(processes))
    }
}

impl ClusterPool {
    /// Creates a pool of free clusters.
    pub fn new(clusters: Vec<Existing>) -> Self {
        Self {
            stock: Mutex::new(Stock {
                free: clusters,
                borrowed: 0,
            }),
            changed: Condvar::new(),
        }
    }

    /// Waits for a free cluster and borrows it.
    ///
    /// # Errors
    ///
    /// Fails if no cluster can become free.
    pub fn borrow(&self) -> anyhow::Result<BorrowedCluster<'_>> {
        let mut stock = self
            .changed
            .wait_while(self.stock(), |stock| stock.free.is_empty() && stock.borrowed > 0)
            .unwrap_or_else(PoisonError::into_inner);
        let cluster = stock
            .free
            .pop()
            .context("earlier scenarios left objects on all clusters")?;
        stock.borrowed += 1;
        Ok(BorrowedCluster {
            cluster,
            from: self,
            is_clean: false,
        })
    }

    fn stock(&self) -> MutexGuard<'_, Stock> {
        // No user of the lock can panic between two changes.
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BorrowedCluster<'_> {
    /// Returns the cluster to the pool, without remains.
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
            pods: Pods::Simulated("198.18.0.0/16".parse().unwrap()),
            folder: None,
        }
    }

    #[test]
    fn a_cluster_that_is_not_given_back_is_never_borrowed_again() {
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
    fn a_second_borrower_waits() {
        let pool = ClusterPool::new(vec![cluster("one")]);
        let one = pool.borrow().unwrap();
        std::thread::scope(|scope| {
            let later = scope.spawn(|| pool.borrow().map(BorrowedCluster::give_back));
            one.give_back();
            later.join().unwrap().unwrap();
        });
    }
}
