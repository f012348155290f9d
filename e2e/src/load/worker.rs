//! One worker: the lives of objects, one after the other.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use kube::Client;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Clients, Counters, pace::Pace};
use crate::{
    request::{self, Answer},
    resource::{Expectation, Resource},
    sample,
};

/// How long a client waits before it asks an API server again that is down.
const OUTAGE_PAUSE: Duration = Duration::from_millis(200);

/// Sends requests until stopped, or not needed any more.
#[derive(Clone)]
pub(super) struct Worker {
    pub(super) client: Client,
    pub(super) counters: Arc<Counters>,
    pub(super) namespace: String,
    pub(super) resources: Arc<[Resource]>,
    pub(super) number: usize,
    pub(super) pace: Pace,
    pub(super) clients: Clients,
    pub(super) stop: CancellationToken,
}

// === impl Worker ===

impl Worker {
    pub(super) async fn run(self) {
        for round in 0_u64.. {
            for resource in &*self.resources {
                if self.stop.is_cancelled() {
                    return;
                }
                self.round(resource, round).await;
            }
            if self.pace.has_others() {
                return;
            }
        }
    }

    /// The life of one object: created, read in every version, patched in one, listed, deleted.
    async fn round(&self, resource: &Resource, round: u64) {
        let name = format!("load-{}-{round}", self.number);
        let created_as = request::text(&resource.example, "/apiVersion").to_owned();
        let Some((_, created_version)) = created_as.split_once('/') else {
            return self
                .counters
                .failure(format!("the example of {} has no apiVersion", resource.plural));
        };
        let mut object = resource.example.clone();
        object["metadata"]["name"] = json!(name);
        let path = |version: &str| resource.path(&self.namespace, version);

        let created = self
            .send("create", "POST", &path(created_version), Some(&object))
            .await;
        self.expect("create", resource, created_version, &created);
        // What was not created cannot be read.
        if created.is_none_or(|answer| answer.code >= 300) {
            return;
        }
        if resource.expectation == Expectation::Admitted {
            self.denied(resource, created_version, &object).await;
        }
        for version in &resource.versions {
            let read = self
                .send("get", "GET", &format!("{}/{name}", path(version)), None)
                .await;
            self.expect("get", resource, version, &read);
        }
        // Only the sample's conversion is known to make objects that are valid in every version.
        let version = match resource.expectation {
            Expectation::Converted | Expectation::Admitted => {
                resource.versions[usize::try_from(round).unwrap_or(0) % resource.versions.len()].as_str()
            }
            Expectation::Version => created_version,
        };
        let patch = json!({"metadata": {"labels": {"round": round.to_string()}}});
        let patched = self
            .send(
                "patch",
                "PATCH",
                &format!("{}/{name}", path(version)),
                Some(&patch),
            )
            .await;
        self.expect("patch", resource, version, &patched);
        let listed = self
            .send("list", "GET", &format!("{}?limit=50", path(version)), None)
            .await;
        if let Some(answer) = listed
            && answer.code != 200
        {
            self.counters
                .failure(format!("list {} at {version}: {answer}", resource.plural));
        }
        let deleted = self
            .send("delete", "DELETE", &format!("{}/{name}", path(version)), None)
            .await;
        if let Some(answer) = deleted
            && answer.code != 200
        {
            self.counters
                .failure(format!("delete {} at {version}: {answer}", resource.plural));
        }
    }

    /// The validating webhook must be asked: an object that it forbids must be denied in its words.
    async fn denied(&self, resource: &Resource, version: &str, object: &Value) {
        let mut forbidden = object.clone();
        forbidden["metadata"]["name"] = json!(format!("forbidden-{}", self.number));
        sample::resize(&mut forbidden, -1);
        let answer = self
            .send(
                "deny",
                "POST",
                &resource.path(&self.namespace, version),
                Some(&forbidden),
            )
            .await;
        if let Some(answer) = answer
            && !(answer.is_denied() && answer.message().contains("size must not be negative"))
        {
            self.counters
                .failure(format!("create of a forbidden {}: {answer}", resource.plural));
        }
    }

    fn expect(&self, verb: &str, resource: &Resource, version: &str, answer: &Option<Answer>) {
        let Some(answer) = answer else { return };
        let problem = if !(answer.code == 200 || answer.code == 201) {
            Some(answer.to_string())
        } else if request::text(&answer.body, "/apiVersion") != format!("{}/{version}", resource.group) {
            Some(format!(
                "answered as {}",
                request::text(&answer.body, "/apiVersion")
            ))
        } else {
            resource.problem(&answer.body)
        };
        if let Some(problem) = problem {
            self.counters
                .failure(format!("{verb} {} at {version}: {problem}", resource.plural));
        }
    }

    /// What a request that was sent again has found: its first try was carried out, and only its answer lost.
    async fn carried_out_before(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        answer: &Answer,
    ) -> Option<Answer> {
        match (method, answer.code) {
            ("POST", 409) => {
                let name = request::text(body?, "/metadata/name");
                request::send(&self.client, "GET", &format!("{path}/{name}"), None)
                    .await
                    .ok()
            }
            ("DELETE", 404) => Some(Answer {
                code: 200,
                ..answer.clone()
            }),
            _ => None,
        }
    }

    /// Sends one request; `None` when it failed below HTTP, which is counted.
    async fn send(
        &self,
        kind: &'static str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Option<Answer> {
        let due = self.pace.due().await;
        self.counters.sent();
        let sent = Instant::now();
        let mut turned_away = false;
        let mut repeated = false;
        loop {
            let result = request::send(&self.client, method, path, body).await;
            let is_outage = result.as_ref().map_or(true, Answer::is_outage);
            let outlasts = self.clients == Clients::OutlastOutages && sent.elapsed() < request::RETRY_LIMIT;
            if is_outage && outlasts {
                repeated = true;
                self.counters.outage(sent.elapsed());
                tokio::time::sleep(OUTAGE_PAUSE).await;
                continue;
            }
            let mut answer = match result {
                Ok(answer) => answer,
                Err(error) => {
                    self.counters.failure(format!("{method} {path}: {error:#}"));
                    return None;
                }
            };
            if repeated && let Some(earlier) = self.carried_out_before(method, path, body, &answer).await {
                answer = earlier;
            }
            if !answer.is_reinitializing() || sent.elapsed() > request::RETRY_LIMIT {
                if answer.code < 400 || kind == "deny" {
                    // How long the API server turns requests away, or is down, is counted apart.
                    let latency = (!turned_away && !repeated).then(|| due.elapsed());
                    self.counters.success(kind, latency);
                }
                return Some(answer);
            }
            tokio::time::sleep(answer.pause()).await;
            turned_away = true;
            self.counters.turned_away(sent.elapsed());
        }
    }
}
