//! Kubernetes events about our objects.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client,
    runtime::events::{Event, EventType, Recorder, Reporter},
};
use serde_json::Value;
use tracing::warn;

use crate::domain::object::{self, ObjectKey};

/// Publishes events. Equal ones are counted up by the API's series, not repeated.
#[derive(Clone)]
pub struct Events {
    recorder: Recorder,
}

/// The most bytes that the API server takes as a note.
const LONGEST_NOTE: usize = 1024;

// === impl Events ===

impl Events {
    /// Publishes through `client`, as `windlass` on `instance` (a pod name).
    pub fn new(client: Client, instance: Option<String>) -> Self {
        let reporter = Reporter {
            controller: "windlass.dev/operator".to_owned(),
            instance,
        };
        Self {
            recorder: Recorder::new(client, reporter),
        }
    }

    /// Says that something went as it should.
    pub async fn note(&self, about: &Value, action: &str, reason: &str, note: &str) {
        self.publish(EventType::Normal, about, None, action, reason, note)
            .await;
    }

    /// Says that something needs attention.
    pub async fn warn(&self, about: &Value, action: &str, reason: &str, note: &str) {
        self.publish(EventType::Warning, about, None, action, reason, note)
            .await;
    }

    /// Says that something about another object needs attention. What is said of each object is counted apart: of equal
    /// events only the first note is kept.
    pub async fn warn_of(&self, about: &Value, related: &ObjectKey, action: &str, reason: &str, note: &str) {
        self.publish(EventType::Warning, about, Some(related), action, reason, note)
            .await;
    }

    /// An event that cannot be published is no reason to stop: it goes to the log.
    async fn publish(
        &self,
        event_type: EventType,
        about: &Value,
        related: Option<&ObjectKey>,
        action: &str,
        reason: &str,
        note: &str,
    ) {
        let event = Event {
            type_: event_type,
            reason: reason.to_owned(),
            note: Some(shorten(note)),
            action: action.to_owned(),
            secondary: related.map(|key| ObjectReference {
                api_version: Some(key.api_version.clone()),
                kind: Some(key.kind.clone()),
                name: Some(key.name.clone()),
                namespace: key.namespace.clone(),
                ..ObjectReference::default()
            }),
        };
        let text = |pointer| object::text(about, pointer).map(str::to_owned);
        let reference = ObjectReference {
            api_version: text("/apiVersion"),
            kind: text("/kind"),
            name: text("/metadata/name"),
            namespace: text("/metadata/namespace"),
            uid: text("/metadata/uid"),
            ..ObjectReference::default()
        };
        if let Err(error) = self.recorder.publish(&event, &reference).await {
            warn!(%error, reason, "Cannot publish an event");
        }
    }
}

fn shorten(note: &str) -> String {
    if note.len() <= LONGEST_NOTE {
        return note.to_owned();
    }
    let end = (0..=LONGEST_NOTE - '…'.len_utf8())
        .rev()
        .find(|end| note.is_char_boundary(*end))
        .unwrap_or(0);
    format!("{}…", &note[..end])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_note_never_exceeds_what_the_api_server_takes(note in "\\PC{0,600}") {
            prop_assert!(shorten(&note).len() <= LONGEST_NOTE);
        }
    }
}
