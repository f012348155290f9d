//! The sync loop: `syncClusterServiceVersion` and `transitionCSVState`.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    checks,
    deletion::{self, FINALIZER},
    install::install,
    objects::{CSVS, OPERATOR_GROUPS, csvs},
};
use crate::{
    request::{self, text},
    steps::{get, list},
};

/// How often it checks for changed ClusterServiceVersions.
const LOOK: Duration = Duration::from_millis(50);

/// How often it resyncs everything. OLM does so every five minutes and on events.
const RESYNC: Duration = Duration::from_secs(2);

/// The reason with which OLM ignores a ClusterServiceVersion.
const NO_RETRY: &str = "InstallComponentFailedNoRetry";

/// The controller of ClusterServiceVersions.
pub(super) struct Controller {
    client: Client,
    did: Arc<Mutex<Vec<String>>>,
    seen: BTreeMap<String, Value>,
}

impl Controller {
    pub(super) fn new(client: Client, did: Arc<Mutex<Vec<String>>>) -> Self {
        Self {
            client,
            did,
            seen: BTreeMap::new(),
        }
    }

    pub(super) async fn run(mut self, stop: CancellationToken) {
        let mut synced = Instant::now();
        while !stop.is_cancelled() {
            let is_due = synced.elapsed() >= RESYNC;
            if is_due {
                synced = Instant::now();
            }
            // As in OLM, errors are logged and retried.
            if let Err(error) = self.look(is_due).await {
                self.note(format!("{error:#}"));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn note(&self, line: String) {
        tracing::info!("OLM: {line}");
        self.did.lock().push(line);
    }

    async fn look(&mut self, is_due: bool) -> anyhow::Result<()> {
        let mut there = BTreeMap::new();
        for csv in list(&self.client, CSVS).await? {
            there.insert(text(&csv, "/metadata/uid").to_owned(), csv);
        }
        let before = std::mem::replace(&mut self.seen, there);
        for (uid, csv) in &before {
            if !self.seen.contains_key(uid) {
                for line in deletion::handle(&self.client, csv).await? {
                    self.note(line);
                }
            }
        }
        for (uid, csv) in &self.seen {
            let is_same = before.get(uid).is_some_and(|before| before == csv);
            if is_due || !is_same {
                self.sync(csv).await?;
            }
        }
        Ok(())
    }

    async fn sync(&self, csv: &Value) -> anyhow::Result<()> {
        if !csv["metadata"]["deletionTimestamp"].is_null() {
            for line in deletion::finalize(&self.client, csv).await? {
                self.note(line);
            }
            return Ok(());
        }
        let finalizers = csv["metadata"]["finalizers"].as_array();
        if finalizers.is_none_or(|finalizers| !finalizers.contains(&json!(FINALIZER))) {
            let mut finalizers = finalizers.cloned().unwrap_or_default();
            finalizers.push(FINALIZER.into());
            let mut changed = csv.clone();
            changed["metadata"]["finalizers"] = finalizers.into();
            return self.put(csv, "", &changed).await;
        }
        if text(csv, "/status/reason") == NO_RETRY || !self.is_in_group(csv).await? {
            return Ok(());
        }
        let phase = text(csv, "/status/phase");
        let (next, reason, message) = match phase {
            "InstallReady" => {
                install(&self.client, csv).await?;
                self.note(format!("installed {}", text(csv, "/metadata/name")));
                (
                    "Installing",
                    "InstallSucceeded",
                    "waiting for install components to report healthy".to_owned(),
                )
            }
            "Installing" => match checks::missing(&self.client, csv).await? {
                None => (
                    "Succeeded",
                    "InstallSucceeded",
                    "install strategy completed with no errors".to_owned(),
                ),
                Some(missing) if missing.starts_with("waiting") => return Ok(()),
                Some(missing) => ("Pending", "NeedsReinstall", missing),
            },
            "Succeeded" => match checks::missing(&self.client, csv).await? {
                None => return Ok(()),
                Some(missing) => ("Failed", "ComponentUnhealthy", missing),
            },
            "Failed" => match checks::missing(&self.client, csv).await? {
                None => (
                    "Succeeded",
                    "InstallSucceeded",
                    "install strategy completed with no errors".to_owned(),
                ),
                Some(missing) => ("Pending", "NeedsReinstall", missing),
            },
            _ if self.are_requirements_met(csv).await? => (
                "InstallReady",
                "AllRequirementsMet",
                "all requirements found, attempting install".to_owned(),
            ),
            _ => return Ok(()),
        };
        self.note(format!("{phase} -> {next}: {message}"));
        let mut changed = csv.clone();
        changed["status"] = json!({"phase": next, "reason": reason, "message": message});
        self.put(csv, "/status", &changed).await
    }

    /// `operatorGroupForCSV`: requires exactly one OperatorGroup in the namespace, and sets its annotations.
    async fn is_in_group(&self, csv: &Value) -> anyhow::Result<bool> {
        let namespace = text(csv, "/metadata/namespace");
        let groups = list(&self.client, OPERATOR_GROUPS).await?;
        let groups: Vec<_> = groups
            .iter()
            .filter(|group| text(group, "/metadata/namespace") == namespace)
            .collect();
        let [group] = groups[..] else { return Ok(false) };
        let targets = group["spec"]["targetNamespaces"].as_array().into_iter().flatten();
        let targets: Vec<_> = targets.filter_map(Value::as_str).collect();
        let mut changed = csv.clone();
        let annotations = windlass_object::json::fields(&mut changed, &["metadata", "annotations"]);
        annotations.insert("olm.operatorGroup".to_owned(), group["metadata"]["name"].clone());
        annotations.insert("olm.operatorNamespace".to_owned(), namespace.into());
        annotations.insert("olm.targetNamespaces".to_owned(), targets.join(",").into());
        if changed == *csv {
            return Ok(true);
        }
        self.put(csv, "", &changed).await?;
        Ok(false)
    }

    async fn are_requirements_met(&self, csv: &Value) -> anyhow::Result<bool> {
        for crd in csv["spec"]["customresourcedefinitions"]["owned"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let path = super::objects::path("CustomResourceDefinition", "", text(crd, "/name"));
            if get(&self.client, &path).await?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// An object that changed is processed again.
    async fn put(&self, csv: &Value, part: &str, changed: &Value) -> anyhow::Result<()> {
        let path = format!(
            "{}/{}{part}",
            csvs(text(csv, "/metadata/namespace")),
            text(csv, "/metadata/name")
        );
        let answer = request::send(&self.client, "PUT", &path, Some(changed)).await?;
        anyhow::ensure!(answer.code < 300 || answer.code == 409, "PUT {path}: {answer}");
        Ok(())
    }
}
