//! Runs a single watch forever.
//!
//! The API server ends each watch after a timeout ([`Watch::config`]), and kube's watcher resumes it. A
//! connection that is silent for longer is dead, and the watcher opens another one.
//!
//! If the API server supports it, the list is streamed at the beginning of the watch (KEP-3157); otherwise it
//! is read in pages, each of which is completely in memory.

use std::time::Duration;

use futures::StreamExt;
use kube::{
    Api, Client,
    runtime::{WatchStreamExt, watcher},
};
use tokio::time::Instant;
use tracing::{debug, info, warn};
use windlass_object::{InCluster, ObjectKey};

use crate::{
    bounded_client::bounded_client,
    definitions,
    index::Index,
    requests::{Cluster, RequestError},
    telemetry::chain,
    trim::trim,
    watch::Watch,
    watched_object::WatchedObject,
};

/// Called with the error when a list or watch fails, and with `None` when it works.
type Note<'a> = dyn Fn(Option<String>) + Send + Sync + 'a;

/// The delay before the first new discovery of a kind that is not served; doubles each time, until an object
/// that defines the kind changes.
const FIRST_RECHECK: Duration = Duration::from_secs(1);

/// The maximum interval of discovery of a kind that is not served: usually its CRD, which is watched
/// separately, triggers discovery.
const LAST_RECHECK: Duration = Duration::from_secs(600);

/// The maximum delay while discovery fails.
const MAX_OUTAGE_DELAY: Duration = Duration::from_secs(30);

/// Watches one kind forever, and reports errors to `note`. Its CustomResourceDefinition may be created and
/// deleted. `served` is the Secret whose private key is kept.
pub(crate) async fn run_watch(
    cluster: &Cluster,
    index: &Index,
    watch: &Watch,
    served: &ObjectKey,
    note: &Note<'_>,
) {
    let remote = cluster
        .remote()
        .filter(|_| watch.kind.cluster == InCluster::Remote);
    let Some(mut remote) = remote.cloned() else {
        let client = cluster.client().clone();
        return run_with_client(client, cluster, index, watch, served, note).await;
    };
    loop {
        let connected = remote.latest();
        let following = async {
            match connected {
                Some(Ok(client)) => {
                    return run_with_client(client, cluster, index, watch, served, note).await;
                }
                Some(Err(problem)) => note(Some(problem.to_string())),
                None => {}
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = following => {}
            () = remote.wait_for_reconnection() => {}
        }
        // Another client may connect to another cluster.
        index.mark_outdated(watch);
    }
}

async fn run_with_client(
    client: Client,
    cluster: &Cluster,
    index: &Index,
    watch: &Watch,
    served: &ObjectKey,
    note: &Note<'_>,
) {
    let client = bounded_client(client, cluster.timeout());
    let mut is_logged = false;
    let mut pause = FIRST_RECHECK;
    let mut doubt = FIRST_RECHECK;
    loop {
        // Subscribes before discovery, so that no later CRD is missed.
        let mut changes = index.subscribe();
        let is_lacking = definitions::is_version_unserved(index, &watch.kind)
            || definitions::is_superseded(index, &watch.kind).await;
        let served_kind = match is_lacking {
            true => Err(RequestError::UnknownKind {
                kind: watch.kind.clone(),
            }),
            false => cluster.served(&watch.kind).await,
        };
        let longest = match served_kind {
            Ok(resource) => {
                // An unread subscription would keep every change in memory.
                drop(changes);
                let api = match &watch.namespace {
                    Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource.resource),
                    None => Api::all_with(client.clone(), &resource.resource),
                };
                (is_logged, pause) = (false, FIRST_RECHECK);
                let started = Instant::now();
                let (targets, (group, _)) = (index.target_kinds(), watch.kind.group_version());
                let target = targets.find(group, &watch.kind.kind);
                let was_listed = tokio::select! {
                    was_listed = watch_served(index, watch, api, served, note) => was_listed,
                    () = definitions::wait_until_superseded(index, &watch.kind) => true,
                    // Other fields of each object are relevant now.
                    () = index.target_changed(&watch.kind, target) => true,
                };
                cluster.forget(&watch.kind);
                if was_listed || started.elapsed() > MAX_OUTAGE_DELAY {
                    doubt = FIRST_RECHECK;
                }
                if !was_listed {
                    // Discovery may be outdated: from another API server, or while the definition is being
                    // deleted.
                    tokio::time::sleep(doubt).await;
                    doubt = (doubt * 2).min(MAX_OUTAGE_DELAY);
                }
                continue;
            }
            Err(RequestError::UnknownKind { .. }) => {
                if !std::mem::replace(&mut is_logged, true) {
                    if *watch.kind.api_version == *windlass_object::names::API_VERSION {
                        info!(kind = %watch.kind, "Waiting for the CustomResourceDefinitions of Windlass: apply `windlass manifests`");
                    } else {
                        debug!(kind = %watch.kind, "The cluster does not serve this kind; waiting for it");
                    }
                }
                index.mark_absent(watch);
                if definitions::is_definition_kind(&watch.kind) {
                    FIRST_RECHECK
                } else {
                    LAST_RECHECK
                }
            }
            Err(error) => {
                warn!(%error, "Cannot determine whether the kind is served");
                note(Some(chain(&error)));
                MAX_OUTAGE_DELAY
            }
        };
        pause = pause.min(longest);
        tokio::select! {
            // A defined kind is served shortly after.
            () = definitions::wait_for_change(&mut changes, &watch.kind) => pause = FIRST_RECHECK,
            () = tokio::time::sleep(pause) => pause *= 2,
        }
    }
}

/// Watches a kind until the API server no longer serves it or, in the remote cluster, no longer responds.
/// Reports whether the kind was ever listed, and can be listed again immediately.
async fn watch_served(
    index: &Index,
    watch: &Watch,
    api: Api<WatchedObject>,
    served: &ObjectKey,
    note: &Note<'_>,
) -> bool {
    let mut was_listed = false;
    let mut is_streamed = true;
    let mut started = false;
    let begin = |is_streamed| {
        watcher(api.clone(), watch.config(is_streamed))
            .default_backoff()
            .boxed()
    };
    // Which fields matter does not depend on the cluster.
    let kind = watch.kind.clone().in_cluster(InCluster::Local);
    let kept = |object| {
        let targets = index.target_kinds();
        trim(object, &kind, served, &targets).filter(|object| watch.keeps(object, &targets))
    };
    let mut events = begin(is_streamed);
    while let Some(event) = events.next().await {
        let is_refused = match &event {
            Err(error) => refuses_stream(error),
            // The stream ended before the list was complete: the API server does not support streaming, or
            // cannot list and does not report why.
            Ok(watcher::Event::Init) => std::mem::replace(&mut started, true),
            Ok(watcher::Event::InitDone) => {
                started = false;
                false
            }
            Ok(_) => false,
        };
        if is_streamed && is_refused {
            is_streamed = false;
            events = begin(is_streamed);
            continue;
        }
        match event {
            Ok(watcher::Event::Init) => index.begin_relist(watch),
            Ok(watcher::Event::InitApply(object)) => {
                if let Some(object) = kept(object.object) {
                    index.relist(watch, object);
                }
            }
            Ok(watcher::Event::InitDone) => {
                was_listed = true;
                note(None);
                index.finish_relist(watch);
            }
            Ok(watcher::Event::Apply(object)) => {
                let key = object.key(&watch.kind);
                match kept(object.object) {
                    Some(object) => index.apply(watch, object),
                    // The index may hold an earlier state of the object.
                    None => index.delete(watch, &key),
                }
            }
            Ok(watcher::Event::Delete(object)) => index.delete(watch, &object.key(&watch.kind)),
            Err(error) if is_gone(&error) => {
                debug!("The kind is no longer served");
                break;
            }
            Err(error) => {
                warn!(%error, "Watch failed; restarting it");
                note(Some(chain(&error)));
                // There is no other sign that the remote cluster is unreachable.
                if watch.kind.cluster == InCluster::Remote {
                    index.mark_outdated(watch);
                    return false;
                }
            }
        }
    }
    was_listed
}

/// Reports whether the API server only supports paginated lists.
fn refuses_stream(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchStartFailed(kube::Error::Api(status)) if [400, 405, 422].contains(&status.code))
}

/// Reports a 404, the response to lists of a kind that is not served.
fn is_gone(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) = error else {
        return false;
    };
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::{
        StreamExt,
        stream::{self, BoxStream},
    };
    use http::{Request, Response};
    use http_body_util::StreamBody;
    use hyper::body::{Bytes, Frame};
    use parking_lot::Mutex;
    use serde_json::{Value, json};
    use tower::{BoxError, service_fn};

    use super::*;
    use crate::kind::kinds;

    /// The response of an API server.
    enum Answer {
        /// No response.
        Never,
        /// Only the status and headers.
        Head,
        /// This status and this complete body.
        Whole(u16, Value),
        /// These events, and then nothing.
        Events(Vec<Value>),
    }

    type Body = StreamBody<BoxStream<'static, Result<Frame<Bytes>, BoxError>>>;

    /// The requests, with their times.
    type ReceivedRequests = Arc<Mutex<Vec<(Duration, String)>>>;

    /// Watches Secrets for `time` on an API server with paginated lists, which answers lists and watches by
    /// `answer`: a function of the path and the number of earlier requests for it.
    async fn run_for(
        time: Duration,
        answer: impl Fn(&str, usize) -> Answer + Clone + Send + 'static,
    ) -> (Arc<Index>, Vec<(Duration, String)>) {
        run_as(time, false, answer).await
    }

    /// Watches Secrets on an API server that may stream lists.
    async fn run_as(
        time: Duration,
        streams: bool,
        answer: impl Fn(&str, usize) -> Answer + Clone + Send + 'static,
    ) -> (Arc<Index>, Vec<(Duration, String)>) {
        let started = Instant::now();
        let received = ReceivedRequests::default();
        let log = received.clone();
        let service = service_fn(move |request: Request<kube::client::Body>| {
            let (answer, log) = (answer.clone(), log.clone());
            async move {
                let uri = request.uri().to_string();
                if uri.contains("sendInitialEvents") && !streams {
                    let status = json!({
                        "kind": "Status", "status": "Failure", "message": "", "reason": "Invalid", "code": 422,
                    });
                    return Ok(response(422, vec![status], false));
                }
                if request.uri().path() == "/api/v1" {
                    let secrets = json!({"name": "secrets", "kind": "Secret", "namespaced": true});
                    return Ok(response(200, vec![json!({"resources": [secrets]})], false));
                }
                let before = {
                    let mut log = log.lock();
                    let same = |(_, other): &&(Duration, String)| is_watch_of(other) == is_watch_of(&uri);
                    let before = log.iter().filter(same).count();
                    log.push((started.elapsed(), uri.clone()));
                    before
                };
                match answer(&uri, before) {
                    Answer::Never => std::future::pending().await,
                    Answer::Head => Ok(response(200, vec![], true)),
                    Answer::Whole(code, body) => Ok(response(code, vec![body], false)),
                    Answer::Events(events) => Ok::<_, BoxError>(response(200, events, true)),
                }
            }
        });
        let cluster = Cluster::new(Client::new(service, "default"), Duration::from_secs(30));
        let index = Arc::new(Index::new());
        let watch = Watch::all(kinds::SECRET);
        let served = kinds::SECRET.object(Some("n"), "windlass-cert");
        let _ = tokio::time::timeout(time, run_watch(&cluster, &index, &watch, &served, &|_| {})).await;
        let received = received.lock().clone();
        (index, received)
    }

    fn is_watch_of(uri: &str) -> bool {
        uri.contains("watch=true")
    }

    fn response(code: u16, parts: Vec<Value>, stays_open: bool) -> Response<Body> {
        let lines = parts.into_iter().map(|part| format!("{part}\n"));
        let frames = stream::iter(lines.map(|line| Ok(Frame::data(Bytes::from(line)))));
        let body = if stays_open {
            frames.chain(stream::pending()).boxed()
        } else {
            frames.boxed()
        };
        Response::builder()
            .status(code)
            .body(StreamBody::new(body))
            .unwrap()
    }

    fn secret(version: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"namespace": "n", "name": "s", "resourceVersion": version},
        })
    }

    fn list() -> Answer {
        let list = json!({
            "apiVersion": "v1", "kind": "SecretList", "metadata": {"resourceVersion": "7"}, "items": [secret("6")],
        });
        Answer::Whole(200, list)
    }

    fn not_found() -> Answer {
        let status =
            json!({"kind": "Status", "status": "Failure", "message": "", "reason": "NotFound", "code": 404});
        Answer::Whole(404, status)
    }

    fn lists(received: &[(Duration, String)]) -> usize {
        received.iter().filter(|(_, uri)| !is_watch_of(uri)).count()
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_watch_is_resumed() {
        let (_, received) = run_for(Duration::from_secs(100), |uri, _| match is_watch_of(uri) {
            true => Answer::Events(vec![json!({"type": "MODIFIED", "object": secret("8")})]),
            false => list(),
        })
        .await;
        assert_eq!(lists(&received), 1, "{received:?}");
        let watches: Vec<_> = received.iter().filter(|(_, uri)| is_watch_of(uri)).collect();
        assert_eq!(watches.len(), 3, "{received:?}");
        assert!(watches[0].1.contains("resourceVersion=7"), "{received:?}");
        assert!(watches[1].1.contains("resourceVersion=8"), "{received:?}");
        assert!(watches[1].0 <= Duration::from_secs(46), "{received:?}");
    }

    fn streamed(uri: &str) -> bool {
        uri.contains("sendInitialEvents=true")
    }

    #[tokio::test(start_paused = true)]
    async fn lists_are_streamed_if_supported() {
        let done = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {
            "resourceVersion": "7", "annotations": {"k8s.io/initial-events-end": "true"},
        }});
        let (index, received) = run_as(Duration::from_secs(60), true, move |uri, _| match streamed(uri) {
            true => Answer::Events(vec![
                json!({"type": "ADDED", "object": secret("6")}),
                json!({"type": "BOOKMARK", "object": done}),
            ]),
            false => Answer::Head,
        })
        .await;
        assert!(index.is_complete(&Watch::all(kinds::SECRET)));
        assert_eq!(index.objects(&kinds::SECRET).len(), 1);
        assert_eq!(lists(&received), 0, "{received:?}");
        assert!(
            !received[0].1.contains("resourceVersion=0"),
            "from the current version: {received:?}"
        );
        assert!(received[1].1.contains("resourceVersion=7"), "{received:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_incomplete_stream_is_replaced_by_a_list() {
        let (index, received) = run_as(Duration::from_secs(60), true, |uri, _| {
            if streamed(uri) {
                return Answer::Whole(200, json!({"type": "ADDED", "object": secret("6")}));
            }
            if is_watch_of(uri) { Answer::Head } else { list() }
        })
        .await;
        assert!(index.is_complete(&Watch::all(kinds::SECRET)));
        let streams = received.iter().filter(|(_, uri)| streamed(uri)).count();
        assert_eq!((streams, lists(&received)), (2, 1), "{received:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_without_a_response_is_retried() {
        for first in [|| Answer::Never, || Answer::Head] {
            let (index, received) = run_for(Duration::from_secs(60), move |uri, before| {
                match (is_watch_of(uri), before) {
                    (false, 0) => first(),
                    (false, _) => list(),
                    (true, _) => Answer::Head,
                }
            })
            .await;
            assert_eq!(lists(&received), 2, "{received:?}");
            assert!(index.is_complete(&Watch::all(kinds::SECRET)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_does_not_start_is_retried() {
        let (_, received) = run_for(Duration::from_secs(60), |uri, before| {
            match (is_watch_of(uri), before) {
                (false, _) => list(),
                (true, 0) => Answer::Never,
                (true, _) => Answer::Head,
            }
        })
        .await;
        assert_eq!((lists(&received), received.len()), (1, 3), "{received:?}");
        assert!(received[2].1.contains("resourceVersion=7"), "{received:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn failing_lists_are_retried_with_backoff() {
        let (_, received) = run_for(Duration::from_secs(60), |_, _| not_found()).await;
        assert!((4..=10).contains(&received.len()), "{received:?}");
    }
}
