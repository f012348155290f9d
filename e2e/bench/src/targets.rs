//! How often each target of a ServingCertificate was written, as a watch of it shows.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::Context;
use futures::StreamExt;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind},
    runtime::{WatchStreamExt, watcher},
};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use windlass_object::names;
use windlass_scenarios::{
    request::{text, version_number},
    steps::{self, PATIENCE, check, serving_certificates, until},
};

use super::objects::TARGET_KINDS;

/// Watches the targets of a ServingCertificate.
pub(super) struct Targets {
    client: Client,
    seen: Arc<Mutex<BTreeMap<String, Seen>>>,
    _watches: JoinSet<()>,
}

/// What was seen of each target up to a moment, by its path.
pub(super) type TargetsSeen = BTreeMap<String, Seen>;

/// What was seen of a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// `KIND NAME`.
    pub(super) title: String,
    version: String,
    versions: u64,
    /// Counts the changes of all but metadata and status.
    generation: i64,
}

/// How often a target was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Writes {
    /// Writes that changed what it says.
    pub(super) changes: u64,
    /// Writes that changed its metadata alone.
    pub(super) metadata_only: u64,
}

impl Targets {
    /// Watches what asks for the trust bundle of a ServingCertificate, and waits until it and we see the same number.
    pub(super) async fn watch(client: &Client, namespace: &str, certificate: &str) -> anyhow::Result<Self> {
        let path = format!("{}/{certificate}", serving_certificates(namespace));
        let certificate = format!("{namespace}/{certificate}");
        let seen: Arc<Mutex<BTreeMap<String, Seen>>> = Arc::default();
        let mut watches = JoinSet::new();
        for (group, kind, collection) in TARGET_KINDS {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
            let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
            let (seen, certificate) = (seen.clone(), certificate.clone());
            watches.spawn(async move {
                let objects = watcher(api, watcher::Config::default())
                    .default_backoff()
                    .touched_objects();
                let mut objects = std::pin::pin!(objects);
                while let Some(object) = objects.next().await {
                    match object {
                        Ok(object)
                            if object.annotations().get(names::INJECT_CA_FROM) == Some(&certificate) =>
                        {
                            let path = format!("{collection}/{}", object.name_any());
                            seen.lock().entry(path).or_default().note(kind, &object);
                        }
                        Ok(_) => {}
                        Err(error) => tracing::warn!(%error, kind, "The watch of targets was interrupted"),
                    }
                }
            });
        }
        until("every target is seen", PATIENCE, async || {
            let object = steps::get(client, &path).await?.unwrap_or_default();
            let total = &object["status"]["targets"]["total"];
            let count = seen.lock().len();
            Ok(check(count > 0 && *total == count, || {
                format!("{count} of {total}")
            }))
        })
        .await?;
        Ok(Self {
            client: client.clone(),
            seen,
            _watches: watches,
        })
    }

    /// What was seen, once that is all there is to see.
    pub(super) async fn snapshot(&self) -> anyhow::Result<TargetsSeen> {
        let paths: Vec<String> = self.seen.lock().keys().cloned().collect();
        for path in &paths {
            let object = steps::get(&self.client, path).await?;
            let object = object.with_context(|| format!("{path} is gone"))?;
            let version = text(&object, "/metadata/resourceVersion").to_owned();
            until(
                &format!("the watch shows {path} at {version}"),
                PATIENCE,
                async || {
                    let seen = self
                        .seen
                        .lock()
                        .get(path)
                        .map(|seen| seen.version.clone())
                        .unwrap_or_default();
                    // It may have seen more than was read.
                    Ok(check(version_number(&seen) >= version_number(&version), || seen))
                },
            )
            .await?;
        }
        Ok(self.seen.lock().clone())
    }
}

impl Seen {
    #[cfg(test)]
    pub(super) fn sample(title: &str, versions: u64, generation: i64) -> Self {
        Self {
            title: title.to_owned(),
            version: versions.to_string(),
            versions,
            generation,
        }
    }

    fn note(&mut self, kind: &str, object: &DynamicObject) {
        let version = object.resource_version().unwrap_or_default();
        if self.version == version {
            return;
        }
        self.title = format!("{kind} {}", object.name_any());
        self.version = version;
        self.versions += 1;
        self.generation = object.metadata.generation.unwrap_or_default();
    }

    /// How often it was written since `before`.
    pub(super) fn writes_since(&self, before: &Self) -> Writes {
        let changes = u64::try_from(self.generation - before.generation).unwrap_or(0);
        Writes {
            changes,
            metadata_only: (self.versions - before.versions).saturating_sub(changes),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(version: &str, generation: i64) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "K",
            "metadata": {"name": "n", "resourceVersion": version, "generation": generation},
        }))
        .unwrap()
    }

    #[test]
    fn changes_are_told_from_writes_of_metadata() {
        let mut seen = Seen::default();
        seen.note("K", &object("7", 3));
        let before = seen.clone();
        // A watch that begins anew shows what it has shown before.
        for (version, generation) in [("7", 3), ("8", 4), ("9", 4), ("9", 4)] {
            seen.note("K", &object(version, generation));
        }
        let expected = Writes {
            changes: 1,
            metadata_only: 1,
        };
        assert_eq!(seen.writes_since(&before), expected);
        assert_eq!(seen.title, "K n");
    }
}
