//! How a pod is, in its own words: a canary, or one of a rollout.

use std::net::IpAddr;

use serde_json::Value;
use windlass_object::{object, text::tidied};

/// How a pod is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodState {
    /// It is ready, and can be asked here.
    Ready(IpAddr),
    /// It may get ready yet.
    Waiting {
        /// One word in CamelCase, if it is a canary.
        reason: &'static str,
        /// What it waits for.
        message: String,
    },
    /// A container crashes: which, and how.
    Crashing(String),
    /// It has ended, for this reason, and never gets ready.
    Ended(String),
}

/// The reason of a pod for which no node has room.
pub const UNSCHEDULABLE: &str = "CanaryUnschedulable";

/// What a container waits for while all is well.
const STARTING: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// The most characters of what a container said at its end.
const LONGEST_WORDS: usize = 300;

/// What clients of the API server say of a kind or version that it does not serve: `meta.NoKindMatchError` and the discovery
/// client of Kubernetes, in lower case.
const UNSERVED: [&str; 2] = ["no matches for kind", "could not find the requested resource"];

/// What to say then.
const UNSERVED_HINT: &str = "if it uses a version that is new in this bundle: a converted version is served only when the pods that convert it are ready, so these must become ready without it and start to watch it later";

/// Reads the state of a pod.
pub fn state(pod: &Value) -> PodState {
    let text = |pointer: &str| object::text(pod, pointer).unwrap_or_default();
    if object::is_terminating(pod) {
        return PodState::Waiting {
            reason: "CanaryStarting",
            message: "is being deleted and will be replaced".to_owned(),
        };
    }
    if matches!(text("/status/phase"), "Failed" | "Succeeded") {
        let ended = containers(pod).find_map(|(name, status)| crash(name, status));
        let words = joined(&[text("/status/reason"), text("/status/message")]);
        return PodState::Ended(ended.unwrap_or_else(|| format!("terminated: {words}")));
    }
    let address = text("/status/podIP").parse::<IpAddr>();
    if let (Some("True"), Ok(address)) = (status_of(pod, "Ready"), address) {
        return PodState::Ready(address);
    }
    if let Some(crash) = containers(pod).find_map(|(name, status)| crash(name, status)) {
        return PodState::Crashing(crash);
    }
    let waiting = containers(pod).find_map(|(name, status)| {
        let reason = object::text(status, "/state/waiting/reason")?;
        let message = object::text(status, "/state/waiting/message").unwrap_or_default();
        let is_starting = STARTING.contains(&reason) && message.is_empty();
        (!is_starting).then(|| format!("is waiting: container {name}: {}", joined(&[reason, message])))
    });
    if let Some(message) = waiting {
        return PodState::Waiting {
            reason: "CanaryWaiting",
            message,
        };
    }
    let problems: Vec<_> = object::items(pod, "/status/conditions")
        .iter()
        .filter(|condition| object::text(condition, "/status") == Some("False"))
        .map(|condition| {
            let text = |pointer| object::text(condition, pointer).unwrap_or_default();
            format!(
                "{}: {}",
                text("/type"),
                joined(&[text("/reason"), text("/message")])
            )
        })
        .collect();
    let unscheduled = status_of(pod, "PodScheduled") == Some("False");
    PodState::Waiting {
        reason: if unscheduled {
            UNSCHEDULABLE
        } else {
            "CanaryStarting"
        },
        message: match problems.first() {
            Some(first) => format!("is not ready: {first}"),
            None => "has not started yet".to_owned(),
        },
    }
}

fn status_of<'a>(pod: &'a Value, condition_type: &str) -> Option<&'a str> {
    object::text(object::condition(pod, condition_type)?, "/status")
}

fn containers(pod: &Value) -> impl Iterator<Item = (&str, &Value)> {
    ["/status/initContainerStatuses", "/status/containerStatuses"]
        .into_iter()
        .flat_map(|list| object::items(pod, list))
        .map(|status| (object::text(status, "/name").unwrap_or_default(), status))
}

/// How a container ended that should not have, and what becomes of it.
fn crash(name: &str, status: &Value) -> Option<String> {
    let ended = ["/state/terminated", "/lastState/terminated"]
        .into_iter()
        .find_map(|pointer| status.pointer(pointer))?;
    let code = ended.get("exitCode").and_then(Value::as_i64).unwrap_or_default();
    let restarts = status
        .get("restartCount")
        .and_then(Value::as_i64)
        .unwrap_or_default();
    // An init container that has done its work.
    if code == 0 && restarts == 0 {
        return None;
    }
    let text = |pointer| object::text(ended, pointer).unwrap_or_default();
    let words = tidied(&last_words(text("/message").trim()));
    let whole = text("/message").to_lowercase();
    let is_unserved = UNSERVED.iter().any(|said| whole.contains(said));
    let mut message = format!("is crashing: container {name} terminated with exit code {code}");
    for part in [text("/reason"), words.as_str()] {
        if !part.is_empty() {
            message = format!("{message}: {part}");
        }
    }
    if let Some(reason) = object::text(status, "/state/waiting/reason") {
        message = format!("{message}; now {reason}");
    }
    if is_unserved {
        message = format!("{message}; {UNSERVED_HINT}");
    }
    Some(message)
}

/// The end of a long text, from the start of a line, or else of a word; from its middle only where that is very long.
fn last_words(text: &str) -> String {
    let Some((cut, _)) = text
        .char_indices()
        .rev()
        .nth(LONGEST_WORDS - 1)
        .filter(|(cut, _)| *cut > 0)
    else {
        return text.to_owned();
    };
    // What precedes tells whether the first word is whole.
    let before = text[..cut].chars().next_back().map_or(0, char::len_utf8);
    let (end, from) = (&text[cut - before..], cut - before);
    let latest = end.len() / 2;
    let after = |is_boundary: fn(char) -> bool| {
        end.char_indices()
            .take_while(|(index, _)| *index < latest)
            .find(|(_, character)| is_boundary(*character))
            .map(|(index, character)| from + index + character.len_utf8())
    };
    let start = after(|character| character == '\n')
        .or_else(|| after(char::is_whitespace))
        .unwrap_or(cut);
    format!("…{}", text[start..].trim_start())
}

fn joined(parts: &[&str]) -> String {
    let parts: Vec<_> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    parts.join(": ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn container(status: Value) -> Value {
        let mut container = json!({"name": "manager", "restartCount": 0});
        for (field, value) in status.as_object().unwrap() {
            container[field] = value.clone();
        }
        json!({
            "phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [container],
            "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady",
                "message": "containers with unready status: [manager]"}]
        })
    }

    fn words(state: PodState) -> (&'static str, String) {
        match state {
            PodState::Ready(address) => ("ready", address.to_string()),
            PodState::Waiting { reason, message } => (reason, message),
            PodState::Crashing(message) => ("crashing", message),
            PodState::Ended(message) => ("ended", message),
        }
    }

    #[test]
    fn each_state_is_told_in_words() {
        let ended =
            json!({"terminated": {"exitCode": 1, "reason": "Error", "message": "line 1\nno flag -x\n"}});
        for (status, expected) in [
            (json!({}), ("CanaryStarting", "has not started yet")),
            (
                json!({"podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}),
                ("ready", "10.0.0.1"),
            ),
            (
                json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]}),
                (
                    "CanaryUnschedulable",
                    "is not ready: PodScheduled: Unschedulable: 0/3 nodes",
                ),
            ),
            (
                container(json!({"state": {"waiting": {"reason": "ContainerCreating"}}})),
                (
                    "CanaryStarting",
                    "is not ready: Ready: ContainersNotReady: containers with unready status: [manager]",
                ),
            ),
            (
                container(
                    json!({"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}),
                ),
                (
                    "CanaryWaiting",
                    "is waiting: container manager: ImagePullBackOff: no such image",
                ),
            ),
            (
                container(json!({"state": {"running": {}}})),
                (
                    "CanaryStarting",
                    "is not ready: Ready: ContainersNotReady: containers with unready status: [manager]",
                ),
            ),
            (
                container(json!({"state": ended})),
                (
                    "crashing",
                    "is crashing: container manager terminated with exit code 1: Error: line 1 no flag -x",
                ),
            ),
            (
                container(
                    json!({"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ended, "restartCount": 3}),
                ),
                (
                    "crashing",
                    "is crashing: container manager terminated with exit code 1: Error: line 1 no flag -x; now CrashLoopBackOff",
                ),
            ),
            (
                container(
                    json!({"state": {"running": {}}, "lastState": {"terminated": {"exitCode": 0}}, "restartCount": 1}),
                ),
                (
                    "crashing",
                    "is crashing: container manager terminated with exit code 0",
                ),
            ),
            (
                json!({"phase": "Failed", "reason": "Evicted", "message": "no memory"}),
                ("ended", "terminated: Evicted: no memory"),
            ),
        ] {
            let pod = json!({"metadata": {}, "status": status});
            assert_eq!(words(state(&pod)), (expected.0, expected.1.to_owned()), "{pod}");
        }
    }

    #[test]
    fn an_init_container_that_is_done_has_not_crashed() {
        let pod = json!({"metadata": {}, "status": {
            "initContainerStatuses": [{"name": "i", "restartCount": 0, "state": {"terminated": {"exitCode": 0}}}],
            "containerStatuses": [{"name": "c", "restartCount": 0, "state": {"waiting": {"reason": "PodInitializing"}}}],
        }});
        assert_eq!(words(state(&pod)).0, "CanaryStarting");
    }

    #[test]
    fn a_long_farewell_is_cut_to_its_end() {
        let message = format!("{}the end", "x".repeat(5000));
        let pod = json!({"status": {"containerStatuses": [
            {"name": "c", "state": {"terminated": {"exitCode": 2, "message": message}}}
        ]}});
        let (_, words) = words(state(&pod));
        assert!(words.ends_with("the end") && words.len() < 400, "{words}");
    }

    #[test]
    fn what_is_cut_begins_with_a_whole_line_or_word() {
        let filling = "word ".repeat(100);
        let path = format!("/{}", "a/".repeat(90));
        for (text, expected) in [
            ("short".to_owned(), "short".to_owned()),
            (
                format!("{filling}\nat {path}\nError: no flag -x\n{}", "b".repeat(160)),
                format!("…Error: no flag -x\n{}", "b".repeat(160)),
            ),
            (format!("{path} {path}"), format!("…{path}")),
            (
                format!("{filling}{}", "ä".repeat(200)),
                format!("…{}{}", "word ".repeat(20), "ä".repeat(200)),
            ),
            ("x".repeat(400), format!("…{}", "x".repeat(300))),
        ] {
            assert_eq!(last_words(&text), expected);
        }
    }

    #[test]
    fn a_container_that_misses_a_kind_is_told_when_versions_are_served() {
        for (message, is_hinted) in [
            (
                r#"No matches for kind "Widget" in version "example.com/v2""#,
                true,
            ),
            (
                "failed to list: the server could not find the requested resource",
                true,
            ),
            ("no such file", false),
        ] {
            let pod = json!({"status": {"containerStatuses": [
                {"name": "c", "state": {"terminated": {"exitCode": 1, "message": message}}}
            ]}});
            let (_, words) = words(state(&pod));
            assert!(words.contains(message), "{words}");
            assert_eq!(words.contains("served only when the pods"), is_hinted, "{words}");
        }
    }

    #[test]
    fn a_canary_that_goes_is_waited_for() {
        let pod = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {
            "podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]
        }});
        assert_eq!(words(state(&pod)).0, "CanaryStarting");
    }
}
