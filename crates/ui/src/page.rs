//! The page of now, made once for all who ask at the same time.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use thiserror::Error;
use tokio::{sync::Mutex, time::Instant};
use windlass_cluster::{Cluster, RequestError};
use windlass_report::ClusterReport;

use crate::gather::gather;

/// How old a page may be that is shown.
const FRESH: Duration = Duration::from_secs(5);

/// The page cannot be made.
#[derive(Debug, Error)]
pub(crate) enum PageError {
    /// What it shows cannot be read.
    #[error("cannot read what the page shows")]
    Gather(#[source] RequestError),
    /// The API server does not say its version.
    #[error("cannot read the version of the cluster")]
    Version(#[source] RequestError),
    /// It cannot be written as HTML.
    #[error("cannot write the page")]
    Write(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The last page that was made.
pub(crate) struct CachedPage {
    cluster: Cluster,
    last: Mutex<Option<(Instant, Arc<str>)>>,
}

// === impl CachedPage ===

impl CachedPage {
    /// None yet, of this cluster.
    pub(crate) fn new(cluster: Cluster) -> Self {
        Self {
            cluster,
            last: Mutex::default(),
        }
    }

    /// A page that is not older than a few seconds.
    ///
    /// # Errors
    ///
    /// When one has to be made and cannot be.
    pub(crate) async fn current(&self) -> Result<Arc<str>, PageError> {
        // Held while one is made: whoever comes meanwhile is given the same.
        let mut last = self.last.lock().await;
        if let Some((at, page)) = &*last
            && at.elapsed() < FRESH
        {
            return Ok(page.clone());
        }
        let page: Arc<str> = self.make().await?.into();
        *last = Some((Instant::now(), page.clone()));
        Ok(page)
    }

    async fn make(&self) -> Result<String, PageError> {
        let subjects = gather(&self.cluster).await.map_err(PageError::Gather)?;
        let version = self.cluster.kube_version().await.map_err(PageError::Version)?;
        let report = ClusterReport::new(&subjects, &format!("Kubernetes {version}"), Timestamp::now());
        report.to_html().map_err(|error| PageError::Write(error.into()))
    }
}
