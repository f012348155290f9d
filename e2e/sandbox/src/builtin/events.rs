//! Events, which two API groups serve with different field names.

use serde_json::{Value, json};

/// Field names in `events.k8s.io/v1` and in the core group (`pkg/apis/core/v1/conversion.go` and
/// `pkg/apis/events/v1/conversion.go` of Kubernetes).
const FIELDS: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// Returns an event with the field names of the group in `api_version`.
pub fn event_in(mut event: Value, api_version: &str) -> Value {
    let is_core = api_version == "v1";
    if let Some(fields) = event.as_object_mut() {
        for (modern, core) in FIELDS {
            let (from, to) = if is_core { (modern, core) } else { (core, modern) };
            if let Some(value) = fields.remove(from) {
                fields.insert(to.to_owned(), value);
            }
        }
    }
    event["apiVersion"] = json!(api_version);
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_the_same_content_in_both_groups() {
        let event = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "a"},
            "regarding": {"kind": "Pod"}, "note": "It runs", "reportingController": "example.com/c", "type": "Normal",
        });
        let core = event_in(event.clone(), "v1");
        assert_eq!(core["involvedObject"], event["regarding"]);
        assert_eq!(core["message"], "It runs");
        assert_eq!(core["reportingComponent"], "example.com/c");
        assert_eq!(core.get("note"), None);
        assert_eq!(event_in(core, "events.k8s.io/v1"), event);
    }
}
