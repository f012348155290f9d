//! One ExtensionConfig.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::Value;
use thiserror::Error;
use tokio::{sync::Semaphore, time::Instant};
use tracing::info;
use windlass_cluster::{RequestError, worker::Action};
use windlass_object::{ObjectKey, names, object};

use super::{
    discover::{discover, endpoints_of},
    elsewhere::{StatusWriter, status_writer},
    pace::{Asked, Attempt, SHORTEST},
    status::{Discovery, has_failed, remarks, status_patch},
};
use crate::{context::Context, reporting::Announced};

/// Keeps the status of ExtensionConfigs.
pub(super) struct ExtensionConfigReconciler {
    pub(super) context: Arc<Context>,
    /// What was asked last of each server. A process that begins asks all of them anew.
    pub(super) attempts: Mutex<HashMap<ObjectKey, Attempt>>,
    /// For servers that have failed.
    pub(super) doubtful: Semaphore,
    pub(super) announced: Announced,
}

/// Why an ExtensionConfig has to be looked at again.
#[derive(Debug, Error)]
#[error(transparent)]
pub(super) struct WriteStatusError(#[from] RequestError);

/// With it an ExtensionConfig is left as it is (`PausedAnnotation` of Cluster API).
const PAUSED: &str = "cluster.x-k8s.io/paused";

/// How often somebody else is looked for that writes, or has ceased to.
const LOOK: Duration = Duration::from_secs(30);

// === impl ExtensionConfigReconciler ===

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
            StatusWriter::Unknown => return Ok(Action::Requeue(LOOK)),
            StatusWriter::Elsewhere(writer) => {
                self.attempts.lock().remove(&key);
                let word = format!("The status is managed elsewhere: {writer}");
                self.note(&config, &key, "ManagedElsewhere", &word);
                return Ok(Action::Requeue(LOOK));
            }
        }
        let (discovery, wait) = match object::annotation(&config, PAUSED) {
            Some(_) => (Some(Discovery::Paused), Duration::MAX),
            None => self.discovery(&key, &config).await,
        };
        let Some(discovery) = discovery else {
            return Ok(Action::Requeue(wait));
        };
        self.say(&config, &key, &discovery);
        if let Some(patch) = status_patch(&config, &discovery, self.context.clock.now()) {
            let cluster = &self.context.cluster;
            match cluster.patch_status_guarded(&key, &patch, names::STATUS).await {
                Ok(_) => info!(object = %key, "Wrote what is discovered"),
                // The watch brings it as it is now.
                Err(error) if error.is_conflict() => return Ok(Action::Requeue(Duration::from_secs(1))),
                Err(error) if error.is_not_found() => return Ok(Action::AwaitChange),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Action::Requeue(wait.min(LOOK)))
    }

    /// What is known of a server, by asking it if it is time for that, and when it is to be asked again. Nothing is known of one that
    /// has changed, until then.
    async fn discovery(&self, key: &ObjectKey, config: &Value) -> (Option<Discovery>, Duration) {
        let asked = Asked {
            uid: config["metadata"]["uid"].clone(),
            spec: config["spec"].clone(),
            endpoints: endpoints_of(&self.context.index, config),
        };
        let known = self.attempts.lock().get(key).map(|attempt| {
            let wait = attempt.wait(&asked, Instant::now());
            (attempt.known(&asked).cloned(), wait)
        });
        if let Some((discovery, wait)) = known
            && !wait.is_zero()
        {
            return (discovery, wait);
        }
        let permit = match has_failed(config) {
            true => match self.doubtful.try_acquire() {
                Ok(permit) => Some(permit),
                Err(_) => return (None, SHORTEST),
            },
            false => None,
        };
        let discovery = match discover(&self.context, config).await {
            Ok(discovered) => Discovery::Discovered(discovered),
            Err(error) => Discovery::NotDiscovered(error.to_string()),
        };
        drop(permit);
        let is_discovered = matches!(discovery, Discovery::Discovered(_));
        self.context.metrics.discovered(&key.name, is_discovered);
        let mut attempts = self.attempts.lock();
        let now = Instant::now();
        let attempt = Attempt::new(asked.clone(), discovery.clone(), attempts.get(key), now);
        let wait = attempt.wait(&asked, now);
        attempts.insert(key.clone(), attempt);
        (Some(discovery), wait)
    }

    /// Says in an event what has changed.
    fn say(&self, config: &Value, key: &ObjectKey, discovery: &Discovery) {
        match discovery {
            Discovery::Paused => self.announced.forget(key),
            Discovery::Discovered(discovered) => {
                let mut word = format!("Discovered {} handlers", discovered.handlers.len());
                if let Some(remarks) = remarks(discovered) {
                    word = format!("{word}; {remarks}");
                }
                self.note(config, key, "Discovered", &word);
            }
            Discovery::NotDiscovered(problem) => {
                if self.announced.is_news(key, problem, None) {
                    let events = &self.context.events;
                    events.warn(config, "Discover", "NotDiscovered", problem);
                }
            }
        }
    }

    fn note(&self, config: &Value, key: &ObjectKey, reason: &str, word: &str) {
        if self.announced.is_news(key, word, None) {
            self.context.events.note(config, "Discover", reason, word);
        }
    }
}
