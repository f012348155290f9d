//! Lists and watches a resource in one version, as informers of controllers do.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{StreamExt, stream::BoxStream};
use http::Request;
use kube::{Client, core::WatchEvent};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::counters::Counters;
use crate::{
    request::{self, text},
    resource::Resource,
};

/// The pause before the next list, if the last one failed or the version is not served.
const PAUSE: Duration = Duration::from_millis(500);

/// Checks the content of every object that it lists or watches.
pub(super) struct Informer {
    pub(super) client: Client,
    pub(super) counters: Arc<Counters>,
    pub(super) namespace: String,
    pub(super) resource: Resource,
    pub(super) version: String,
    pub(super) stop: CancellationToken,
}

impl Informer {
    pub(super) async fn run(self) {
        let stop = self.stop.clone();
        stop.run_until_cancelled(async {
            loop {
                match self.list().await {
                    Some(resource_version) => self.watch(&resource_version).await,
                    None => tokio::time::sleep(PAUSE).await,
                }
            }
        })
        .await;
    }

    /// Returns the resource version of the list; `None` if there is no list.
    async fn list(&self) -> Option<String> {
        let path = self.resource.path(&self.namespace, &self.version);
        let sent = Instant::now();
        let answer = match request::send(&self.client, "GET", &path, None).await {
            Ok(answer) => answer,
            Err(error) => {
                self.fail(sent, &format!("list: {error:#}"));
                return None;
            }
        };
        let is_optional = self.resource.optional_versions.contains(&self.version);
        match answer.code {
            200 => {}
            404 if is_optional => return None,
            _ if answer.is_reinitializing() && sent.elapsed() < request::RETRY_LIMIT => return None,
            _ => {
                self.fail(sent, &format!("list: {answer}"));
                return None;
            }
        }
        for object in answer.body["items"].as_array().into_iter().flatten() {
            self.check(sent, object);
        }
        Some(text(&answer.body, "/metadata/resourceVersion").to_owned())
    }

    /// Watches until the API server ends the watch, as it does when the definition changes.
    async fn watch(&self, resource_version: &str) {
        let sent = Instant::now();
        // The next list reports what is wrong.
        let Ok(mut events) = self.open(resource_version).await else {
            return;
        };
        while let Some(Ok(event)) = events.next().await {
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                    self.check(sent, &object);
                }
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(expired) if expired.code == 410 => return,
                WatchEvent::Error(status) => return self.fail(sent, &format!("watch: {status:?}")),
            }
        }
    }

    async fn open(
        &self,
        resource_version: &str,
    ) -> anyhow::Result<BoxStream<'static, kube::Result<WatchEvent<Value>>>> {
        let path = self.resource.path(&self.namespace, &self.version);
        let query = "watch=true&allowWatchBookmarks=true&timeoutSeconds=60";
        let request =
            Request::get(format!("{path}?{query}&resourceVersion={resource_version}")).body(Vec::new())?;
        Ok(self.client.request_events(request).await?.boxed())
    }

    fn check(&self, sent: Instant, object: &Value) {
        let api_version = text(object, "/apiVersion");
        let problem = match self.resource.problem(object) {
            _ if api_version != format!("{}/{}", self.resource.group, self.version) => {
                Some(format!("object in {api_version}"))
            }
            problem => problem,
        };
        if let Some(problem) = problem {
            self.fail(sent, &problem);
        }
    }

    fn fail(&self, sent: Instant, problem: &str) {
        let text = format!(
            "informer of {} at {}: {problem}",
            self.resource.plural, self.version
        );
        self.counters.failure((sent, Instant::now()), &text);
    }
}
