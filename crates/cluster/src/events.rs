//! Publishing of events in the background.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::warn;
use windlass_object::{ObjectKey, names, patch::guarded};

use crate::{
    event::{CONTROLLER, EventSubject, event},
    lease::NotLeading,
    requests::{Cluster, RequestError},
};

/// Queues events, which an [`EventPublisher`] publishes.
#[derive(Clone)]
pub struct Events {
    queue: mpsc::Sender<(EventSubject, Timestamp)>,
    dropped: Arc<AtomicU64>,
}

/// Publishes events. An event that repeats one of the last minutes increases its count instead.
///
/// The recorder of kube-runtime merges events that differ in their note, and keeps the note of the first:
/// which certificate was issued, or which rotation was requested.
pub struct EventPublisher {
    cluster: Cluster,
    /// The reporting pod.
    instance: String,
    queue: mpsc::Receiver<(EventSubject, Timestamp)>,
    published: HashMap<EventSubject, Series>,
}

/// A published event and its count.
#[derive(Clone, Debug)]
struct Series {
    event: ObjectKey,
    count: u32,
    last: Timestamp,
}

/// The maximum number of queued events; further ones are dropped while the API server accepts none.
const BACKLOG: usize = 256;

/// The timeout for publishing the remaining events at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The time without repetition after which an event is new, as in client-go.
const SERIES_TIMEOUT: SignedDuration = SignedDuration::from_mins(6);

impl Events {
    /// Creates a queue, and a publisher that writes through `cluster` as `instance` (a pod name).
    pub fn new(cluster: Cluster, instance: Option<String>) -> (Self, EventPublisher) {
        let (sender, queue) = mpsc::channel(BACKLOG);
        let events = Self {
            queue: sender,
            dropped: Arc::default(),
        };
        let publisher = EventPublisher {
            cluster,
            instance: instance.unwrap_or_else(|| CONTROLLER.to_owned()),
            queue,
            published: HashMap::new(),
        };
        (events, publisher)
    }

    /// Publishes a normal event.
    pub fn note(&self, about: &Value, action: &str, reason: &str, note: &str) {
        self.enqueue(EventSubject::new("Normal", about, None, action, reason, note));
    }

    /// Publishes a warning.
    pub fn warn(&self, about: &Value, action: &str, reason: &str, note: &str) {
        self.enqueue(EventSubject::new("Warning", about, None, action, reason, note));
    }

    /// Publishes a warning about a related object; warnings about different related objects are counted
    /// separately.
    pub fn warn_related(&self, about: &Value, related: &ObjectKey, action: &str, reason: &str, note: &str) {
        self.enqueue(EventSubject::new(
            "Warning",
            about,
            Some(related),
            action,
            reason,
            note,
        ));
    }

    /// Returns how many events were dropped because the queue was full.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn enqueue(&self, subject: Option<EventSubject>) {
        let Some(subject) = subject else { return };
        if let Err(error) = self.queue.try_send((subject, Timestamp::now())) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            let (EventSubject { about, reason, .. }, _) = error.into_inner();
            warn!(%about, reason, "Dropped an event: the queue is full");
        }
    }
}

impl EventPublisher {
    /// Publishes events until `stop`, and then the remaining ones, within a time limit. An event that cannot
    /// be published is logged.
    pub async fn run(mut self, stop: CancellationToken) {
        let stopped = async {
            stop.cancelled().await;
            tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
        };
        let publishing = async {
            let mut is_closed = false;
            loop {
                let queue = tokio::select! {
                    () = stop.cancelled(), if !is_closed => {
                        is_closed = true;
                        self.queue.close();
                        continue;
                    }
                    queue = self.queue.recv() => queue,
                };
                let Some((subject, at)) = queue else { return };
                self.publish(subject, at).await;
            }
        };
        tokio::select! {
            () = stopped => warn!("Some events were not published in time"),
            () = publishing => {}
        }
    }

    async fn publish(&mut self, subject: EventSubject, at: Timestamp) {
        let reason = subject.reason.clone();
        if let Err(error) = self.try_publish(subject, at).await
            && !NotLeading::is_cause_of(&error)
        {
            warn!(%error, reason, "Cannot publish an event");
        }
    }

    async fn try_publish(&mut self, subject: EventSubject, at: Timestamp) -> Result<(), RequestError> {
        self.published
            .retain(|_, series| at.duration_since(series.last) < SERIES_TIMEOUT);
        let series = match self.published.get(&subject) {
            Some(earlier) => self.count_up(earlier, at).await?,
            None => None,
        };
        let series = match series {
            Some(series) => series,
            None => self.create(&subject, at).await?,
        };
        self.published.insert(subject, series);
        Ok(())
    }

    /// Returns `None` if the event was deleted.
    async fn count_up(&self, earlier: &Series, at: Timestamp) -> Result<Option<Series>, RequestError> {
        let count = earlier.count + 1;
        let series = json!({"count": count, "lastObservedTime": MicroTime(at)});
        let patch = guarded(&[], "/series", &series);
        match self.cluster.patch(&earlier.event, &patch, names::EVENTS).await {
            Ok(_) => Ok(Some(Series {
                event: earlier.event.clone(),
                count,
                last: at,
            })),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, subject: &EventSubject, at: Timestamp) -> Result<Series, RequestError> {
        let event = event(subject, &self.instance, at);
        self.cluster.create(&event, names::EVENTS).await?;
        Ok(Series {
            event: ObjectKey::from_object(&event).ok_or(RequestError::Nameless)?,
            count: 1,
            last: at,
        })
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kube::{Client, client::Body};
    use parking_lot::Mutex;
    use tokio::time::Instant;
    use tower::{BoxError, service_fn};

    use super::*;

    /// An API server with a `delay` per write, and the written objects.
    fn server(delay: Duration) -> (Cluster, Arc<Mutex<Vec<Value>>>) {
        let written = Arc::<Mutex<Vec<Value>>>::default();
        let log = written.clone();
        let service = service_fn(move |request: Request<Body>| {
            let log = log.clone();
            async move {
                let (head, body) = request.into_parts();
                let sent = body.collect_bytes().await?;
                let answer = if head.method == http::Method::GET {
                    json!({"resources": [{"name": "events", "kind": "Event", "namespaced": true}]})
                } else {
                    tokio::time::sleep(delay).await;
                    let sent: Value = serde_json::from_slice(&sent)?;
                    log.lock().push(sent.clone());
                    json!({})
                };
                Ok::<_, BoxError>(Response::new(Body::from(answer.to_string().into_bytes())))
            }
        });
        let cluster = Cluster::new(Client::new(service, "default"), Duration::from_secs(30));
        (cluster, written)
    }

    fn about(name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "n", "name": name}})
    }

    #[tokio::test(start_paused = true)]
    async fn events_are_queued_and_overflow_is_counted() {
        let (cluster, _) = server(Duration::from_secs(20));
        let (events, publisher) = Events::new(cluster, None);
        let running = tokio::spawn(publisher.run(CancellationToken::new()));
        let started = Instant::now();
        for index in 0..BACKLOG + 3 {
            events.note(&about(&format!("c{index}")), "Try", "Tried", "a note");
        }
        assert_eq!(started.elapsed(), Duration::ZERO);
        assert_eq!(events.dropped(), 3);
        running.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn repeated_events_are_counted_and_the_queue_is_flushed_at_shutdown() {
        let (cluster, written) = server(Duration::from_millis(100));
        let (events, publisher) = Events::new(cluster, Some("pod".to_owned()));
        let stop = CancellationToken::new();
        let running = tokio::spawn(publisher.run(stop.clone()));
        events.note(&about("a"), "Try", "Tried", "a note");
        events.note(&about("a"), "Try", "Tried", "a note");
        events.warn(&about("b"), "Try", "Failed", "another");
        stop.cancel();
        running.await.unwrap();
        let written = written.lock();
        assert_eq!(written.len(), 3, "{written:?}");
        assert_eq!(written[0]["note"], "a note");
        assert_eq!(written[1][0]["value"]["count"], 2, "{written:?}");
        assert_eq!(written[2]["type"], "Warning");
    }

    #[tokio::test(start_paused = true)]
    async fn flushing_events_at_shutdown_has_a_timeout() {
        let (cluster, _) = server(Duration::from_secs(3600));
        let (events, publisher) = Events::new(cluster, None);
        let stop = CancellationToken::new();
        let running = tokio::spawn(publisher.run(stop.clone()));
        for index in 0..10 {
            events.note(&about(&format!("c{index}")), "Try", "Tried", "a note");
        }
        stop.cancel();
        let started = Instant::now();
        running.await.unwrap();
        assert!(started.elapsed() <= SHUTDOWN_TIMEOUT * 2);
    }
}
