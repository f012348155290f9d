//! Somebody overwrites a target that no rotation concerns, and watches how long until it is put right.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use futures::StreamExt;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind},
    runtime::{WatchStreamExt, watcher},
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::{sync::watch, task::JoinSet, time::MissedTickBehavior};
use windlass_scenarios::{
    request::{self, text, version_number},
    sample,
    steps::{PATIENCE, VALIDATING, serving_certificates, succeed},
    test_cluster::TestCluster,
};

use super::calls::Calls;
use crate::objects::{certificate, target};

/// Where its ServingCertificate is.
const NAMESPACE: &str = "bystander";

/// Its ServingCertificate, and its target.
const NAME: &str = "bystander";

/// How often the target is overwritten: whoever writes more often than once a second is answered less often.
const BEAT: Duration = Duration::from_millis(1050);

/// Where the target has its trust bundle.
const BUNDLE: &str = "/webhooks/0/clientConfig/caBundle";

/// Overwrites a target again and again.
pub(super) struct RepairProbe {
    client: Client,
    path: String,
    /// The bundle that the target is to have.
    own: String,
    /// The one that it gets.
    foreign: String,
    seen: watch::Receiver<SeenBundle>,
    _watch: JoinSet<()>,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub(super) struct ProbedRepairs {
    /// The probe's own writes: what the API server needs for one.
    pub(super) writes: Calls,
    /// From each of them to when it was seen to be put right.
    pub(super) repairs: Calls,
}

/// How the target was last.
#[derive(Clone, Debug)]
struct SeenBundle {
    version: u64,
    bundle: String,
    at: Instant,
}

impl RepairProbe {
    /// Creates the target, and waits until it has its trust bundle.
    pub(super) async fn begin(cluster: &TestCluster) -> anyhow::Result<Self> {
        let client = cluster.client.clone();
        let namespace = json!({"metadata": {"name": NAMESPACE}});
        succeed(&client, "POST", "/api/v1/namespaces", Some(&namespace)).await?;
        let certificates = serving_certificates(NAMESPACE);
        succeed(&client, "POST", &certificates, Some(&certificate(NAME))).await?;
        let target = target(NAMESPACE, NAME, NAME);
        succeed(&client, "POST", VALIDATING, Some(&target)).await?;
        let none = SeenBundle {
            version: 0,
            bundle: String::new(),
            at: Instant::now(),
        };
        let (sender, mut seen) = watch::channel(none);
        let mut watch = JoinSet::new();
        watch.spawn(follow(client.clone(), sender));
        let injected = seen.wait_for(|seen| !seen.bundle.is_empty());
        let injected = tokio::time::timeout(PATIENCE, injected).await;
        let own = injected
            .context("the target of the probe has no trust bundle")??
            .bundle
            .clone();
        Ok(Self {
            client,
            path: format!("{VALIDATING}/{NAME}"),
            own,
            foreign: sample::trust_bundle(cluster).await?,
            seen,
            _watch: watch,
        })
    }

    /// Overwrites the target about once a second, for ever.
    pub(super) async fn run(&self, outcome: Arc<Mutex<ProbedRepairs>>) {
        let mut beats = tokio::time::interval(BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            beats.tick().await;
            self.overwrite(&outcome).await;
        }
    }

    async fn overwrite(&self, outcome: &Mutex<ProbedRepairs>) {
        let mut seen = self.seen.clone();
        let patch = json!([{"op": "add", "path": BUNDLE, "value": self.foreign}]);
        let sent = Instant::now();
        let version = match request::send(&self.client, "PATCH", &self.path, Some(&patch)).await {
            Ok(answer) if answer.code == 200 => {
                version_number(text(&answer.body, "/metadata/resourceVersion"))
            }
            Ok(answer) => return outcome.lock().writes.failed(&answer.to_string()),
            Err(error) => return outcome.lock().writes.failed(&format!("{error:#}")),
        };
        outcome.lock().writes.succeeded(sent.elapsed());
        let repaired = seen.wait_for(|seen| seen.version > version && seen.bundle == self.own);
        let repaired = tokio::time::timeout(PATIENCE, repaired).await;
        let at = match repaired {
            Ok(Ok(seen)) => Some(seen.at),
            Ok(Err(_)) | Err(_) => None,
        };
        let repairs = &mut outcome.lock().repairs;
        match at {
            Some(at) => repairs.succeeded(at.saturating_duration_since(sent)),
            None => repairs.failed(&format!("not within {PATIENCE:?}")),
        }
    }
}

/// Keeps what is known of the target up to date.
async fn follow(client: Client, seen: watch::Sender<SeenBundle>) {
    let kind = GroupVersionKind::gvk(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
    );
    let api = Api::<DynamicObject>::all_with(client, &ApiResource::from_gvk(&kind));
    let objects = watcher::watch_object(api, NAME).default_backoff();
    let mut objects = std::pin::pin!(objects);
    while let Some(object) = objects.next().await {
        match object {
            Ok(Some(object)) => {
                let bundle = text(&object.data, BUNDLE).to_owned();
                let version = version_number(object.resource_version().as_deref().unwrap_or_default());
                seen.send_replace(SeenBundle {
                    version,
                    bundle,
                    at: Instant::now(),
                });
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "The watch of the probe was interrupted"),
        }
    }
}
