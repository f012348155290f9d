//! Reconciliation of an ExtensionConfig.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::Value;
use thiserror::Error;
use tokio::{sync::Semaphore, time::Instant};
use tracing::info;
use windlass_cluster::{RequestError, worker::Action};
use windlass_object::{ObjectKey, names, object};

use super::{
    backoff::{Attempt, DiscoveryInput, MIN_INTERVAL},
    discover::{current_endpoints, discover},
    other_manager::{StatusWriter, status_writer},
    status::{Discovery, has_failed, remarks, status_patch},
};
use crate::{announced::Announced, context::Context};

/// Reconciles the status of ExtensionConfigs.
pub(super) struct ExtensionConfigReconciler {
    pub(super) context: Arc<Context>,
    /// Last discovery of each server. A new process discovers all of them again.
    pub(super) attempts: Mutex<HashMap<ObjectKey, Attempt>>,
    /// Limits concurrent discoveries of servers that have failed.
    pub(super) failed_servers: Semaphore,
    pub(super) announced: Announced,
}

/// Why a reconciliation failed and is retried.
#[derive(Debug, Error)]
#[error(transparent)]
pub(super) struct WriteStatusError(#[from] RequestError);

/// Annotation that pauses the reconciliation of an ExtensionConfig (`PausedAnnotation` of Cluster API).
const PAUSED: &str = "cluster.x-k8s.io/paused";

/// Time between checks for another manager.
const RESYNC: Duration = Duration::from_secs(30);

impl ExtensionConfigReconciler {
    pub(super) async fn reconcile(self: Arc<Self>, key: ObjectKey) -> Result<Action, WriteStatusError> {
        let config = self.context.index.find(&key);
        let config = config.filter(|config| object::text(config, "/metadata/deletionTimestamp").is_none());
        let Some(config) = config else {
            self.attempts.lock().remove(&key);
            self.announced.forget(&key);
            self.context.metrics.forget_discoveries(&key.name);
            return Ok(Action::AwaitChange);
        };
        match status_writer(&self.context.index, &config, self.context.clock.now()) {
            StatusWriter::Windlass => {}
            StatusWriter::Unknown => return Ok(Action::Requeue(RESYNC)),
            StatusWriter::Other(writer) => {
                self.attempts.lock().remove(&key);
                let message = format!("Not managed by Windlass: {writer}");
                self.announce_note(&config, &key, "ManagedElsewhere", &message);
                return Ok(Action::Requeue(RESYNC));
            }
        }
        let (discovery, wait) = match object::annotation(&config, PAUSED) {
            Some(_) => (Some(Discovery::Paused), Duration::MAX),
            None => self.discover_if_due(&key, &config).await,
        };
        let Some(discovery) = discovery else {
            return Ok(Action::Requeue(wait));
        };
        self.announce(&config, &key, &discovery);
        if let Some(patch) = status_patch(&config, &discovery, self.context.clock.now()) {
            let cluster = &self.context.cluster;
            match cluster.patch_status_guarded(&key, &patch, names::STATUS).await {
                Ok(_) => info!(object = %key, "Updated the discovery status"),
                // The watch will deliver the latest version.
                Err(error) if error.is_conflict() => return Ok(Action::Requeue(Duration::from_secs(1))),
                Err(error) if error.is_not_found() => return Ok(Action::AwaitChange),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Action::Requeue(wait.min(RESYNC)))
    }

    /// Returns the known or a new discovery, and the time until the next one. Returns `None` if the input has
    /// changed and discovery has to wait.
    async fn discover_if_due(&self, key: &ObjectKey, config: &Value) -> (Option<Discovery>, Duration) {
        let input = DiscoveryInput {
            uid: config["metadata"]["uid"].clone(),
            spec: config["spec"].clone(),
            endpoints: current_endpoints(&self.context.index, config),
        };
        let known = self.attempts.lock().get(key).map(|attempt| {
            let wait = attempt.wait(&input, Instant::now());
            (attempt.result_for(&input).cloned(), wait)
        });
        if let Some((discovery, wait)) = known
            && !wait.is_zero()
        {
            return (discovery, wait);
        }
        let permit = match has_failed(config) {
            true => match self.failed_servers.try_acquire() {
                Ok(permit) => Some(permit),
                Err(_) => return (None, MIN_INTERVAL),
            },
            false => None,
        };
        let discovery = match discover(&self.context, config).await {
            Ok(discovered) => Discovery::Discovered(discovered),
            Err(error) => Discovery::NotDiscovered(error.to_string()),
        };
        drop(permit);
        let is_discovered = matches!(discovery, Discovery::Discovered(_));
        self.context.metrics.record_discovery(&key.name, is_discovered);
        let mut attempts = self.attempts.lock();
        let now = Instant::now();
        let attempt = Attempt::new(input.clone(), discovery.clone(), attempts.get(key), now);
        let wait = attempt.wait(&input, now);
        attempts.insert(key.clone(), attempt);
        (Some(discovery), wait)
    }

    /// Publishes an event if the result has changed.
    fn announce(&self, config: &Value, key: &ObjectKey, discovery: &Discovery) {
        match discovery {
            Discovery::Paused => self.announced.forget(key),
            Discovery::Discovered(discovered) => {
                let mut message = format!("Discovered {} handlers", discovered.handlers.len());
                if let Some(remarks) = remarks(discovered) {
                    message = format!("{message}; {remarks}");
                }
                self.announce_note(config, key, "Discovered", &message);
            }
            Discovery::NotDiscovered(problem) => {
                if self.announced.is_news(key, problem, None) {
                    let events = &self.context.events;
                    events.warn(config, "Discover", "NotDiscovered", problem);
                }
            }
        }
    }

    fn announce_note(&self, config: &Value, key: &ObjectKey, reason: &str, message: &str) {
        if self.announced.is_news(key, message, None) {
            self.context.events.note(config, "Discover", reason, message);
        }
    }
}
