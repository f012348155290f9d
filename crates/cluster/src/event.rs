//! Events as objects, in the form that `kubectl describe` shows.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde_json::{Value, json};
use windlass_object::{InCluster, ObjectKey, object};

use crate::kind::kinds;

/// The content of an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EventSubject {
    pub(crate) about: ObjectKey,
    uid: String,
    related: Option<ObjectKey>,
    event_type: &'static str,
    action: String,
    pub(crate) reason: String,
    note: String,
}

/// The reporting controller, which `kubectl describe` shows below From.
pub(crate) const CONTROLLER: &str = "windlass.dev/operator";

/// The namespace of events about cluster-scoped objects; the API server requires it.
const NAMESPACE_OF_CLUSTER_SCOPED: &str = "default";

/// The maximum length of a note in bytes.
const LONGEST_NOTE: usize = 1024;

/// The maximum length of a name in characters.
const LONGEST_NAME: usize = 253;

impl EventSubject {
    /// Creates the content of an event about an object; `None` if the object has no name.
    pub(crate) fn new(
        event_type: &'static str,
        about: &Value,
        related: Option<&ObjectKey>,
        action: &str,
        reason: &str,
        note: &str,
    ) -> Option<Self> {
        Some(Self {
            about: ObjectKey::from_object(about)?,
            uid: object::text(about, "/metadata/uid")
                .unwrap_or_default()
                .to_owned(),
            related: related.cloned(),
            event_type,
            action: action.to_owned(),
            reason: reason.to_owned(),
            note: shorten(note, LONGEST_NOTE),
        })
    }
}

/// Creates an event of `events.k8s.io/v1`.
pub(crate) fn event(subject: &EventSubject, instance: &str, now: Timestamp) -> Value {
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
    // Clients search events about a cluster-scoped object by an empty namespace.
    if let Some(namespace) = &about.namespace {
        regarding["namespace"] = namespace.as_str().into();
    }
    // Events belong to the local cluster.
    let related = subject.related.as_ref();
    let related = related
        .filter(|related| related.cluster == InCluster::Local)
        .map(|related| {
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

    fn subject(namespace: Option<&str>, name: &str) -> EventSubject {
        EventSubject {
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
    fn events_are_found_by_kubectl_describe() {
        let about = |namespace| event(&subject(namespace, "a"), "pod", Timestamp::UNIX_EPOCH);
        let namespaced = about(Some("n"));
        assert_eq!(namespaced["metadata"]["namespace"], "n");
        assert_eq!(namespaced["regarding"]["namespace"], "n");
        let cluster_scoped = about(None);
        assert_eq!(cluster_scoped["metadata"]["namespace"], "default");
        assert_eq!(cluster_scoped["regarding"].get("namespace"), None);
    }

    #[test]
    fn event_names_fit_for_long_object_names() {
        let event = event(&subject(Some("n"), &"a".repeat(253)), "pod", Timestamp::MAX);
        assert_eq!(object::text(&event, "/metadata/name").map(str::len), Some(253));
    }

    proptest! {
        #[test]
        fn notes_never_exceed_the_limit_of_the_api_server(note in "\\PC{0,600}") {
            prop_assert!(shorten(&note, LONGEST_NOTE).len() <= LONGEST_NOTE);
        }
    }
}
