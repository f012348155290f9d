//! Kubernetes events about our objects.

use std::{collections::HashMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tracing::warn;
use windlass_object::{ObjectKey, names, object, patch::guarded};

use crate::{
    kind::kinds,
    lease::NotLeading,
    requests::{Cluster, RequestError},
};

/// Publishes events. One that says the same as one of the last minutes is counted there, and not repeated.
///
/// The recorder of kube-runtime takes events for the same that differ in their note, and would go on showing the
/// first: which certificate was issued, which rotation was asked for.
#[derive(Clone)]
pub struct Events {
    cluster: Cluster,
    /// Who reports: the pod.
    instance: String,
    published: Arc<Mutex<HashMap<Subject, Series>>>,
}

/// What an event says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Subject {
    about: ObjectKey,
    uid: String,
    related: Option<ObjectKey>,
    event_type: &'static str,
    action: String,
    reason: String,
    note: String,
}

/// An event that was published, and how often it has happened.
#[derive(Clone, Debug)]
struct Series {
    event: ObjectKey,
    count: u32,
    last: Timestamp,
}

/// Who publishes, as `kubectl describe` shows it below From.
const CONTROLLER: &str = "windlass.dev/operator";

/// Where events about objects without a namespace go; the API server takes them nowhere else.
const NAMESPACE_OF_CLUSTER_SCOPED: &str = "default";

/// After how long without a repetition an event is a new one, as in client-go.
const SERIES_ENDS: SignedDuration = SignedDuration::from_mins(6);

/// The most bytes that the API server takes as a note.
const LONGEST_NOTE: usize = 1024;

/// The longest name of an object, in characters.
const LONGEST_NAME: usize = 253;

// === impl Events ===

impl Events {
    /// Publishes through `cluster`, as `instance` (a pod name).
    pub fn new(cluster: Cluster, instance: Option<String>) -> Self {
        Self {
            cluster,
            instance: instance.unwrap_or_else(|| CONTROLLER.to_owned()),
            published: Arc::default(),
        }
    }

    /// Says that something went as it should.
    pub async fn note(&self, about: &Value, action: &str, reason: &str, note: &str) {
        self.publish("Normal", about, None, action, reason, note).await;
    }

    /// Says that something needs attention.
    pub async fn warn(&self, about: &Value, action: &str, reason: &str, note: &str) {
        self.publish("Warning", about, None, action, reason, note).await;
    }

    /// Says that something about another object needs attention. What is said of each object is counted apart.
    pub async fn warn_of(&self, about: &Value, related: &ObjectKey, action: &str, reason: &str, note: &str) {
        self.publish("Warning", about, Some(related), action, reason, note)
            .await;
    }

    /// An event that cannot be published is no reason to stop: it goes to the log.
    async fn publish(
        &self,
        event_type: &'static str,
        about: &Value,
        related: Option<&ObjectKey>,
        action: &str,
        reason: &str,
        note: &str,
    ) {
        let Some(key) = ObjectKey::of(about) else { return };
        let subject = Subject {
            about: key,
            uid: object::text(about, "/metadata/uid")
                .unwrap_or_default()
                .to_owned(),
            related: related.cloned(),
            event_type,
            action: action.to_owned(),
            reason: reason.to_owned(),
            note: shorten(note, LONGEST_NOTE),
        };
        if let Err(error) = self.say(subject, Timestamp::now()).await
            && !NotLeading::caused(&error)
        {
            warn!(%error, reason, "Cannot publish an event");
        }
    }

    async fn say(&self, subject: Subject, now: Timestamp) -> Result<(), RequestError> {
        let earlier = {
            let mut published = self.published.lock();
            published.retain(|_, series| now.duration_since(series.last) < SERIES_ENDS);
            published.get(&subject).cloned()
        };
        let series = match earlier {
            Some(earlier) => self.count_up(&earlier, now).await?,
            None => None,
        };
        let series = match series {
            Some(series) => series,
            None => self.create(&subject, now).await?,
        };
        self.published.lock().insert(subject, series);
        Ok(())
    }

    /// `None` when the event is gone.
    async fn count_up(&self, earlier: &Series, now: Timestamp) -> Result<Option<Series>, RequestError> {
        let count = earlier.count + 1;
        let series = json!({"count": count, "lastObservedTime": MicroTime(now)});
        let patch = guarded(&[], "/series", &series);
        match self.cluster.patch(&earlier.event, &patch, names::EVENTS).await {
            Ok(_) => Ok(Some(Series {
                event: earlier.event.clone(),
                count,
                last: now,
            })),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, subject: &Subject, now: Timestamp) -> Result<Series, RequestError> {
        let event = event(subject, &self.instance, now);
        self.cluster.create(&event, names::EVENTS).await?;
        Ok(Series {
            event: ObjectKey::of(&event).ok_or(RequestError::Nameless)?,
            count: 1,
            last: now,
        })
    }
}

/// An event of `events.k8s.io/v1`.
fn event(subject: &Subject, instance: &str, now: Timestamp) -> Value {
    let about = &subject.about;
    let suffix = format!(".{:x}", now.as_nanosecond());
    let name = about.name.chars().take(LONGEST_NAME - suffix.len());
    let key = kinds::EVENT.object(
        Some(about.namespace.as_deref().unwrap_or(NAMESPACE_OF_CLUSTER_SCOPED)),
        &(name.collect::<String>() + &suffix),
    );
    let mut regarding = json!({
        "apiVersion": about.api_version, "kind": about.kind, "name": about.name, "uid": subject.uid,
    });
    // Whoever looks for the events of an object without a namespace asks for those without one.
    if let Some(namespace) = &about.namespace {
        regarding["namespace"] = namespace.as_str().into();
    }
    let related = subject.related.as_ref().map(|related| {
        json!({
            "apiVersion": related.api_version, "kind": related.kind, "name": related.name,
            "namespace": related.namespace,
        })
    });
    json!({
        "apiVersion": key.api_version,
        "kind": key.kind,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "eventTime": MicroTime(now),
        "type": subject.event_type,
        "action": subject.action,
        "reason": subject.reason,
        "note": subject.note,
        "regarding": regarding,
        "related": related,
        "reportingController": CONTROLLER,
        "reportingInstance": instance,
    })
}

fn shorten(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let end = (0..=longest - '…'.len_utf8())
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn subject(namespace: Option<&str>, name: &str) -> Subject {
        Subject {
            about: kinds::SERVING_CERTIFICATE.object(namespace, name),
            uid: "1".to_owned(),
            related: None,
            event_type: "Normal",
            action: "Rotate".to_owned(),
            reason: "RotationStarted".to_owned(),
            note: "Started the rotation".to_owned(),
        }
    }

    #[test]
    fn an_event_is_where_describe_looks_for_it() {
        let about = |namespace| event(&subject(namespace, "a"), "pod", Timestamp::UNIX_EPOCH);
        let namespaced = about(Some("n"));
        assert_eq!(namespaced["metadata"]["namespace"], "n");
        assert_eq!(namespaced["regarding"]["namespace"], "n");
        let cluster_scoped = about(None);
        assert_eq!(cluster_scoped["metadata"]["namespace"], "default");
        assert_eq!(cluster_scoped["regarding"].get("namespace"), None);
    }

    #[test]
    fn the_name_of_an_event_fits_however_long_that_of_its_object_is() {
        let event = event(&subject(Some("n"), &"a".repeat(253)), "pod", Timestamp::MAX);
        assert_eq!(object::text(&event, "/metadata/name").map(str::len), Some(253));
    }

    proptest! {
        #[test]
        fn a_note_never_exceeds_what_the_api_server_takes(note in "\\PC{0,600}") {
            prop_assert!(shorten(&note, LONGEST_NOTE).len() <= LONGEST_NOTE);
        }
    }
}
