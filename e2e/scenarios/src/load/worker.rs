//! A worker: it creates, uses and deletes one object after another.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use kube::Client;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{counters::Counters, pace::Pace};
use crate::{
    request::{self, RequestAnswer},
    resource::{Expectation, Resource},
    sample,
};

/// The pause before a client retries an API server that is down.
const OUTAGE_PAUSE: Duration = Duration::from_millis(200);

/// The kind of a request that a webhook must reject.
const DENY: &str = "deny";

/// How clients handle an unavailable API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// No answer, or an answer that the API server is down, is a failure.
    Strict,
    /// Clients retry while the API server is down, as controllers do. Retries are counted separately.
    OutlastOutages,
}

/// One request.
struct Call<'a> {
    /// The kind of the request.
    kind: &'static str,
    method: &'static str,
    version: &'a str,
    path: String,
    body: Option<&'a Value>,
}

/// The result of a request.
struct Exchange {
    answer: RequestAnswer,
    /// When it was sent: the last try, if the API server rejected earlier ones.
    sent: Instant,
    answered: Instant,
}

/// Sends requests until it is stopped or superfluous.
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

    /// Runs one object through its life: create, read in each version, patch in one version, list, delete.
    async fn round(&self, resource: &Resource, round: u64) {
        let name = format!("load-{}-{round}", self.number);
        let created_as = request::text(&resource.example, "/apiVersion").to_owned();
        let Some((_, created_version)) = created_as.split_once('/') else {
            let now = Instant::now();
            let problem = format!("the example of {} has no apiVersion", resource.plural);
            return self.counters.failure((now, now), &problem);
        };
        let mut object = resource.example.clone();
        object["metadata"]["name"] = json!(name);
        let call = |kind, method, version, rest: &str, body| Call {
            kind,
            method,
            version,
            path: resource.path(&self.namespace, version) + rest,
            body,
        };
        let this = format!("/{name}");

        let create = call("create", "POST", created_version, "", Some(&object));
        let created = self.send(&create).await;
        self.expect(resource, &create, created.as_ref());
        // An object that was not created cannot be read.
        if created.is_none_or(|created| created.answer.code >= 300) {
            return;
        }
        if resource.expectation == Expectation::Admitted {
            self.denied(resource, created_version, &object).await;
        }
        for version in &resource.versions {
            let get = call("get", "GET", version, &this, None);
            let read = self.send(&get).await;
            self.expect(resource, &get, read.as_ref());
        }
        for version in &resource.optional_versions {
            self.use_optional(resource, version, &name, round).await;
        }
        // Only the sample's conversion produces objects that are valid in every version.
        let version = match resource.expectation {
            Expectation::Converted | Expectation::Admitted => {
                resource.versions[usize::try_from(round).unwrap_or(0) % resource.versions.len()].as_str()
            }
            Expectation::Version => created_version,
        };
        let label = json!({"metadata": {"labels": {"round": round.to_string()}}});
        let patch = call("patch", "PATCH", version, &this, Some(&label));
        let patched = self.send(&patch).await;
        self.expect(resource, &patch, patched.as_ref());
        for last in [
            call("list", "GET", version, "?limit=50", None),
            call("delete", "DELETE", version, &this, None),
        ] {
            if let Some(ended) = self.send(&last).await
                && ended.answer.code != 200
            {
                self.failure(resource, &last, &ended, &ended.answer.to_string());
            }
        }
    }

    /// Reads, lists and patches an object in a version that may not be served.
    async fn use_optional(&self, resource: &Resource, version: &str, name: &str, round: u64) {
        let collection = resource.path(&self.namespace, version);
        let object = format!("{collection}/{name}");
        let label = json!({"metadata": {"labels": {format!("round-{version}"): round.to_string()}}});
        for (kind, method, path, body) in [
            ("get", "GET", object.clone(), None),
            ("list", "GET", format!("{collection}?limit=50"), None),
            ("patch", "PATCH", object.clone(), Some(&label)),
        ] {
            let call = Call {
                kind,
                method,
                version,
                path,
                body,
            };
            let Some(exchange) = self.send(&call).await else {
                continue;
            };
            let answer = &exchange.answer;
            let is_served = match answer.code {
                200 => true,
                _ if answer.is_version_unserved(name) => false,
                _ => {
                    self.failure(resource, &call, &exchange, &answer.to_string());
                    continue;
                }
            };
            let times = (exchange.sent, exchange.answered);
            self.counters.served(version, is_served, times);
            if is_served && kind != "list" {
                self.expect(resource, &call, Some(&exchange));
            }
        }
    }

    /// Checks that the validating webhook rejects an invalid object with its own message.
    async fn denied(&self, resource: &Resource, version: &str, object: &Value) {
        let mut forbidden = object.clone();
        forbidden["metadata"]["name"] = json!(format!("forbidden-{}", self.number));
        sample::resize(&mut forbidden, -1);
        let create = Call {
            kind: DENY,
            method: "POST",
            version,
            path: resource.path(&self.namespace, version),
            body: Some(&forbidden),
        };
        let Some(denied) = self.send(&create).await else {
            return;
        };
        let answer = &denied.answer;
        if !(answer.is_denied() && answer.message().contains("size must not be negative")) {
            self.failure(resource, &create, &denied, &answer.to_string());
        }
    }

    fn expect(&self, resource: &Resource, call: &Call<'_>, exchange: Option<&Exchange>) {
        let Some(exchange) = exchange else { return };
        let answer = &exchange.answer;
        let api_version = request::text(&answer.body, "/apiVersion");
        let problem = if !(answer.code == 200 || answer.code == 201) {
            Some(answer.to_string())
        } else if api_version != format!("{}/{}", resource.group, call.version) {
            Some(format!("answered as {api_version}"))
        } else {
            resource.problem(&answer.body)
        };
        if let Some(problem) = problem {
            self.failure(resource, call, exchange, &problem);
        }
    }

    fn failure(&self, resource: &Resource, call: &Call<'_>, exchange: &Exchange, problem: &str) {
        let text = format!("{} {} at {}: {problem}", call.kind, resource.plural, call.version);
        self.counters.failure((exchange.sent, exchange.answered), &text);
    }

    /// The answer to a retry whose first try was executed although its answer was lost.
    async fn carried_out_before(&self, call: &Call<'_>, answer: &RequestAnswer) -> Option<RequestAnswer> {
        match (call.method, answer.code) {
            ("POST", 409) => {
                let name = request::text(call.body?, "/metadata/name");
                let path = format!("{}/{name}", call.path);
                request::send(&self.client, "GET", &path, None).await.ok()
            }
            ("DELETE", 404) => Some(RequestAnswer {
                code: 200,
                ..answer.clone()
            }),
            _ => None,
        }
    }

    /// Whether the answer, or the lack of one, means that the API server is down or starting.
    async fn is_outage(&self, answer: Option<&RequestAnswer>) -> bool {
        let Some(answer) = answer else { return true };
        answer.is_outage() || (answer.is_service_unknown() && request::ready(&self.client).await.is_err())
    }

    /// Sends one request. Returns `None` if it failed below HTTP, which is counted.
    async fn send(&self, call: &Call<'_>) -> Option<Exchange> {
        let due = self.pace.due().await;
        self.counters.sent(call.version);
        let first_sent = Instant::now();
        let mut turned_away = false;
        let mut repeated = false;
        loop {
            let sent = Instant::now();
            let result = request::send(&self.client, call.method, &call.path, call.body).await;
            let answered = Instant::now();
            let waited = answered - first_sent;
            let outlasts = self.clients == Clients::OutlastOutages && waited < request::RETRY_LIMIT;
            if outlasts && self.is_outage(result.as_ref().ok()).await {
                repeated = true;
                self.counters.outage(waited);
                tokio::time::sleep(OUTAGE_PAUSE).await;
                continue;
            }
            let mut answer = match result {
                Ok(answer) => answer,
                Err(error) => {
                    let text = format!("{} {}: {error:#}", call.method, call.path);
                    self.counters.failure((sent, answered), &text);
                    return None;
                }
            };
            if repeated && let Some(earlier) = self.carried_out_before(call, &answer).await {
                answer = earlier;
            }
            if !answer.is_reinitializing() || waited > request::RETRY_LIMIT {
                if answer.code < 400 || call.kind == DENY {
                    // Rejections and downtime of the API server are counted separately.
                    let latency = (!turned_away && !repeated).then(|| due.elapsed());
                    self.counters.success(call.kind, latency);
                }
                return Some(Exchange {
                    answer,
                    sent,
                    answered,
                });
            }
            tokio::time::sleep(answer.pause()).await;
            turned_away = true;
            self.counters.turned_away(first_sent.elapsed());
        }
    }
}
