//! Logs and objects of a failed scenario.

use std::{fs, path::PathBuf};

use super::cluster::TestCluster;
use crate::steps;

/// The collections that are kept of a failed scenario.
const EVIDENCE: &[&str] = &[
    steps::BUNDLE_DEPLOYMENTS,
    "/apis/windlass.dev/v1alpha1/servingcertificates",
    steps::CRDS,
    steps::VALIDATING,
    steps::MUTATING,
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets",
    "/api/v1/namespaces",
    "/api/v1/pods",
    "/api/v1/services",
    "/apis/discovery.k8s.io/v1/endpointslices",
    "/apis/events.k8s.io/v1/events",
];

impl TestCluster {
    /// The last lines of the operator's log, which are printed with a failure.
    pub fn log_tail(&self) -> String {
        let log = fs::read_to_string(&self.operator.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    /// The last lines of each container's log, below the container's name.
    pub fn last_words(&self) -> String {
        let logs = fs::read_dir(self.directory.path().join("node/logs"));
        let mut paths: Vec<PathBuf> = logs
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        paths.sort();
        let words = paths.iter().map(|path| {
            let log = fs::read_to_string(path).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            format!(
                "{name}:\n  {}",
                lines[lines.len().saturating_sub(5)..].join("\n  ")
            )
        });
        words.collect::<Vec<_>>().join("\n")
    }

    /// Keeps the test cluster's folder, and writes all objects except Secrets into it. Returns its path.
    ///
    /// # Errors
    ///
    /// Fails if the objects cannot be read or written.
    pub async fn keep(&mut self) -> anyhow::Result<PathBuf> {
        self.directory.disable_cleanup(true);
        let folder = self.directory.path().to_owned();
        let objects = folder.join("objects");
        fs::create_dir_all(&objects)?;
        for collection in EVIDENCE {
            let found = steps::list(&self.client, collection).await?;
            let name = collection.rsplit('/').next().unwrap_or(collection);
            fs::write(
                objects.join(format!("{name}.json")),
                serde_json::to_vec_pretty(&found)?,
            )?;
        }
        Ok(folder)
    }
}
