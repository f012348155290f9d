//! Why an object of a bundle does not do what it is for, in words for people.

use serde_json::Value;
use windlass_object::{
    ObjectKey, object,
    text::{shortened, tidied},
};

/// An object that is not healthy, or of which that cannot be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ailment {
    /// Which one.
    pub key: ObjectKey,
    /// Whether it is not; else nobody can say.
    pub is_known: bool,
    /// Why.
    pub why: String,
}

/// Conditions that are `True` of what works, the one that says most first.
const GOOD: [&str; 8] = [
    "Ready",
    "Available",
    "Healthy",
    "Established",
    "Reconciled",
    "Synced",
    "Accepted",
    "Discovered",
];

/// Conditions that are `True` of what does not.
const BAD: [&str; 4] = ["Failed", "Degraded", "Stalled", "ReplicaFailure"];

/// The most bytes of what others say.
const LONGEST: usize = 512;

impl Ailment {
    /// Of an object that is not healthy, as it is observed; `says` is whose word that is, if it is not known of Kubernetes' own
    /// kinds.
    pub fn of(key: ObjectKey, observed: &Value, says: Option<&str>) -> Self {
        let why = match (cause(observed), says) {
            (Some(cause), None) => cause,
            (Some(cause), Some(says)) => format!("{cause} ({says})"),
            (None, Some(says)) => format!("it is not healthy ({says})"),
            (None, None) => "it is not healthy".to_owned(),
        };
        Self {
            key,
            is_known: true,
            why,
        }
    }

    /// Of an object of which nobody can say whether it is healthy.
    pub fn unknown(key: ObjectKey, why: &str) -> Self {
        Self {
            key,
            is_known: false,
            why: quoted(why),
        }
    }

    /// Of an object that is not there.
    pub fn absent(key: ObjectKey) -> Self {
        Self {
            key,
            is_known: true,
            why: "it was not found".to_owned(),
        }
    }
}

/// What an object says of itself.
fn cause(observed: &Value) -> Option<String> {
    let status = observed.get("status").filter(|status| !status.is_null());
    let Some(status) = status else {
        return Some("it has no status yet".to_owned());
    };
    let number = |pointer| observed.pointer(pointer).and_then(Value::as_i64);
    let generation = number("/metadata/generation");
    // The default of kinds that follow the conventions of kstatus.
    if number("/status/observedGeneration").is_some_and(|seen| seen < 0) {
        return Some("it has no status yet".to_owned());
    }
    if let (Some(generation), Some(seen)) = (generation, number("/status/observedGeneration"))
        && seen < generation
    {
        return Some(format!(
            "its status is for generation {seen}, not yet for {generation}"
        ));
    }
    let is_bad = |name: &&str| status_of(observed, name) == Some("True");
    let lacks = |name: &&str| status_of(observed, name).is_some_and(|status| status != "True");
    let bad = BAD.into_iter().find(is_bad);
    let condition = bad.or_else(|| GOOD.into_iter().find(lacks));
    if let Some(condition) = condition.and_then(|name| said(observed, name)) {
        return Some(condition);
    }
    if object::text(observed, "/spec/type") == Some("LoadBalancer") {
        return Some("it has no load balancer address yet".to_owned());
    }
    if let Some(desired) = number("/spec/replicas") {
        let available = number("/status/availableReplicas").unwrap_or(0);
        if available < desired {
            return Some(format!("{available} of {desired} replicas are available"));
        }
    }
    ["phase", "state", "health"].into_iter().find_map(|field| {
        let value = status.get(field)?.as_str()?;
        Some(format!("status.{field} is {}", quoted(value)))
    })
}

fn status_of<'a>(observed: &'a Value, condition_type: &str) -> Option<&'a str> {
    object::text(object::condition(observed, condition_type)?, "/status")
}

/// A condition with its reason and message.
fn said(observed: &Value, condition_type: &str) -> Option<String> {
    let condition = object::condition(observed, condition_type)?;
    let status = object::text(condition, "/status")?;
    let words = ["/reason", "/message"].map(|field| object::text(condition, field).unwrap_or_default());
    let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
    Some(match words.is_empty() {
        true => format!("condition {condition_type} is {status}"),
        false => format!(
            "condition {condition_type} is {status}: {}",
            quoted(&words.join(": "))
        ),
    })
}

/// What others say, made harmless.
fn quoted(text: &str) -> String {
    shortened(tidied(text), LONGEST)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn why(observed: Value, says: Option<&str>) -> String {
        let key =
            ObjectKey::from_object(&json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}}))
                .unwrap();
        Ailment::of(key, &observed, says).why
    }

    #[test]
    fn an_object_says_itself_what_is_wrong_with_it() {
        let condition = |name: &str, status: &str, message: &str| json!({"type": name, "status": status, "reason": "Why", "message": message});
        for (observed, expected) in [
            (json!({"spec": {"replicas": 3}}), "it has no status yet"),
            (
                json!({"metadata": {"generation": 1}, "status": {"observedGeneration": -1}}),
                "it has no status yet",
            ),
            (
                json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1, "phase": "Ready"}}),
                "its status is for generation 1, not yet for 2",
            ),
            (
                json!({"status": {"conditions": [condition("Ready", "False", "1 of 2"), condition("Synced", "True", "")]}}),
                "condition Ready is False: Why: 1 of 2",
            ),
            (
                json!({"status": {"conditions": [condition("Degraded", "False", ""), condition("Available", "Unknown", "")]}}),
                "condition Available is Unknown: Why",
            ),
            (
                json!({"status": {"conditions": [condition("Ready", "False", "no"), condition("Stalled", "True", "a\nb")]}}),
                "condition Stalled is True: Why: a b",
            ),
            (
                json!({"spec": {"replicas": 3}, "status": {"availableReplicas": 1}}),
                "1 of 3 replicas are available",
            ),
            (
                json!({"spec": {"type": "LoadBalancer"}, "status": {}}),
                "it has no load balancer address yet",
            ),
            (json!({"status": {"phase": "Pending"}}), "status.phase is Pending"),
            (json!({"status": {"other": 1}}), "it is not healthy"),
        ] {
            assert_eq!(why(observed.clone(), None), expected, "{observed}");
        }
    }

    #[test]
    fn whose_word_it_is_is_said() {
        let says = Some("ResourceInterpretation databases");
        assert_eq!(
            why(json!({"status": {"other": 1}}), says),
            "it is not healthy (ResourceInterpretation databases)"
        );
        assert_eq!(
            why(json!({"status": {"phase": "Pending"}}), says),
            "status.phase is Pending (ResourceInterpretation databases)"
        );
    }

    #[test]
    fn what_others_say_is_short_and_harmless() {
        let hostile = format!("\u{1b}[2J{}", "x".repeat(5000));
        let condition = json!({"type": "Ready", "status": "False", "message": hostile});
        let why = why(json!({"status": {"conditions": [condition]}}), None);
        assert!(why.len() < 600 && !why.contains('\u{1b}'), "{why}");
    }
}
