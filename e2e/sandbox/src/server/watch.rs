//! `watch`.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::StreamExt;
use serde_json::{Value, json};

use super::{
    api_server::ApiServer,
    call::{Call, Reply, ResourcePath},
    kinds::ServedResource,
    read::parse_revision,
    selectors::Selectors,
    table,
};
use crate::{
    StatusError,
    storage::{Collection, Event, EventType},
};

/// The interval of bookmarks for clients that request them.
const BOOKMARK: Duration = Duration::from_secs(60);

/// How long watches of custom resources continue after their CRD has changed: as long as the real server
/// drains requests.
const DRAIN: Duration = Duration::from_millis(1000);

struct Watch {
    server: ApiServer,
    call: Call,
    served: ServedResource,
    namespace: String,
    selectors: Selectors,
    bookmarks: bool,
    deadline: Instant,
    epoch: u64,
    cuts: u64,
}

/// Opens a watch.
pub(super) async fn open(
    server: &ApiServer,
    call: &Call,
    target: &ResourcePath,
    served: &ServedResource,
) -> Result<Reply, StatusError> {
    check_options(call)?;
    server.check_initialised(served)?;
    let revision = parse_revision(call.query("resourceVersion"))?;
    let streaming = call.flag("sendInitialEvents");
    let initial = streaming || (revision == 0 && !call.query.contains_key("sendInitialEvents"));
    let seconds = call
        .query("timeoutSeconds")
        .parse::<u64>()
        .ok()
        .filter(|seconds| *seconds > 0);
    let seconds = seconds.unwrap_or_else(|| 1800 + super::metadata::random_below(1800));
    let watch = Watch {
        server: server.clone(),
        call: call.clone(),
        served: served.clone(),
        namespace: target.namespace.clone(),
        selectors: Selectors::parse(call, served, &target.name)?,
        bookmarks: call.flag("allowWatchBookmarks"),
        deadline: Instant::now() + Duration::from_secs(seconds),
        epoch: server.0.kinds.epoch(&served.group, &served.resource),
        cuts: server.0.faults.cuts(),
    };
    let (first, revision) = if initial {
        watch.initial(streaming).await?
    } else {
        (Vec::new(), revision)
    };
    let revision = if revision == 0 {
        server.0.store.revision()
    } else {
        revision
    };
    Ok(Reply::Watch(watch.events(first, revision).boxed()))
}

fn check_options(call: &Call) -> Result<(), StatusError> {
    let invalid = |problem: &str| {
        Err(StatusError::new(
            422,
            "Invalid",
            format!("ListOptions.meta.k8s.io \"\" is invalid: {problem}"),
        ))
    };
    let rule = call.query("resourceVersionMatch");
    let sends = call.query.contains_key("sendInitialEvents");
    match (sends, rule) {
        (false, "") | (true, "NotOlderThan") => Ok(()),
        (false, _) => invalid(
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
        (true, "") => invalid(
            "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
        (true, other) => invalid(&format!(
            "[resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to \
             NotOlderThan, resourceVersionMatch: Unsupported value: {other:?}: supported values: \"NotOlderThan\"]"
        )),
    }
}

impl Watch {
    fn collection(&self) -> Collection<'_> {
        self.served.collection(&self.namespace)
    }

    /// Returns ADDED events for all existing objects, and the bookmark that ends them if it was requested.
    async fn initial(&self, streaming: bool) -> Result<(Vec<Value>, u64), StatusError> {
        let (stored, revision) = self.server.0.store.list(self.collection());
        let mut events = Vec::new();
        for (_, object) in stored {
            let object = self.server.listed_object(&self.served, &object).await?;
            if self.selectors.select(&object) {
                events.push(self.event("ADDED", object));
            }
        }
        if streaming && self.bookmarks {
            let mut bookmark = self.bookmark(revision);
            bookmark["object"]["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
            events.push(bookmark);
        }
        Ok((events, revision))
    }

    fn events(self, first: Vec<Value>, mut revision: u64) -> impl futures::Stream<Item = Value> + Send {
        async_stream::stream! {
            for event in first {
                yield event;
            }
            let mut changes = self.server.0.store.subscribe();
            let mut bookmarked = Instant::now();
            let mut drained: Option<Instant> = None;
            loop {
                self.server.0.faults.wait_until_resumed().await;
                changes.mark_unchanged();
                match self.server.0.store.since(revision, self.collection()) {
                    Err(expired) => {
                        yield too_old(revision, expired.oldest);
                        return;
                    }
                    Ok((events, upto)) => {
                        for event in events {
                            match self.translate(&event).await {
                                Ok(Some(event)) => yield event,
                                Ok(None) => {}
                                Err(error) => {
                                    yield json!({"type": "ERROR", "object": error.to_status()});
                                    return;
                                }
                            }
                        }
                        revision = revision.max(upto);
                    }
                }
                if drained.is_none()
                    && self.server.0.kinds.epoch(&self.served.group, &self.served.resource) != self.epoch
                {
                    drained = Some(Instant::now() + DRAIN);
                }
                if self.server.0.faults.cuts() != self.cuts {
                    return;
                }
                let end = drained.map_or(self.deadline, |drained| drained.min(self.deadline));
                let now = Instant::now();
                if now >= end {
                    if self.bookmarks && drained.is_none() {
                        yield self.bookmark(revision);
                    }
                    return;
                }
                if self.bookmarks && bookmarked.elapsed() >= BOOKMARK {
                    bookmarked = now;
                    yield self.bookmark(revision);
                }
                // Polls even without changes: for CRDs, cuts and deadlines.
                let pause = (end - now).min(Duration::from_millis(250));
                let _ = tokio::time::timeout(pause, changes.changed()).await;
            }
        }
    }

    /// Translates a change into an event of this watch: objects can enter and leave its selection.
    async fn translate(&self, event: &Event) -> Result<Option<Value>, StatusError> {
        let object = self.server.listed_object(&self.served, &event.object).await?;
        let selected_now = event.change != EventType::Deleted && self.selectors.select(&object);
        let before = match &event.previous {
            Some(previous) => self.previous_if_selected(previous).await?,
            None => None,
        };
        Ok(match (before, selected_now) {
            (None, true) => Some(self.event("ADDED", object)),
            (Some(_), true) => Some(self.event("MODIFIED", object)),
            (Some(mut last), false) => {
                last["metadata"]["resourceVersion"] = object["metadata"]["resourceVersion"].clone();
                Some(self.event("DELETED", last))
            }
            (None, false) => None,
        })
    }

    async fn previous_if_selected(&self, previous: &Arc<Value>) -> Result<Option<Value>, StatusError> {
        let previous = self.server.listed_object(&self.served, previous).await?;
        Ok(self.selectors.select(&previous).then_some(previous))
    }

    fn event(&self, event_type: &str, object: Value) -> Value {
        json!({"type": event_type, "object": table::object(&self.call, &self.served, object)})
    }

    fn bookmark(&self, revision: u64) -> Value {
        json!({"type": "BOOKMARK", "object": {
            "kind": self.served.kind, "apiVersion": self.served.api_version(),
            "metadata": {"resourceVersion": revision.to_string(), "creationTimestamp": null},
        }})
    }
}

fn too_old(revision: u64, oldest: u64) -> Value {
    let message = format!("too old resource version: {revision} ({oldest})");
    json!({"type": "ERROR", "object": StatusError::new(410, "Expired", message).to_status()})
}
