//! The current page, rendered once for all concurrent requests.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use thiserror::Error;
use tokio::{sync::Mutex, time::Instant};
use windlass_cluster::{Cluster, RequestError};
use windlass_report::ClusterReport;

use crate::gather::gather;

/// How old a page may be.
const MAX_AGE: Duration = Duration::from_secs(5);

/// Why the page cannot be created.
#[derive(Debug, Error)]
pub(crate) enum PageError {
    /// The objects cannot be read.
    #[error("cannot read the objects for the page")]
    Gather(#[source] RequestError),
    /// The API server does not report its version.
    #[error("cannot read the version of the cluster")]
    Version(#[source] RequestError),
    /// The HTML cannot be rendered.
    #[error("cannot render the page")]
    Write(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Renders the page, and shares it between viewers for a short time.
pub(crate) struct CachedPage {
    cluster: Cluster,
    last: Mutex<Option<(Instant, Arc<str>)>>,
}

impl CachedPage {
    /// Creates an empty cache for this cluster.
    pub(crate) fn new(cluster: Cluster) -> Self {
        Self {
            cluster,
            last: Mutex::default(),
        }
    }

    /// Returns a page that is at most a few seconds old.
    ///
    /// # Errors
    ///
    /// If a new page is needed and cannot be created.
    pub(crate) async fn current(&self) -> Result<Arc<str>, PageError> {
        // Locked while a page is created, so that concurrent requests share it.
        let mut last = self.last.lock().await;
        if let Some((at, page)) = &*last
            && at.elapsed() < MAX_AGE
        {
            return Ok(page.clone());
        }
        let page: Arc<str> = self.render().await?.into();
        *last = Some((Instant::now(), page.clone()));
        Ok(page)
    }

    async fn render(&self) -> Result<String, PageError> {
        let subjects = gather(&self.cluster).await.map_err(PageError::Gather)?;
        let version = self.cluster.kube_version().await.map_err(PageError::Version)?;
        let report = ClusterReport::new(&subjects, &format!("Kubernetes {version}"), Timestamp::now());
        report.to_html().map_err(|error| PageError::Write(error.into()))
    }
}
