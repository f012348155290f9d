//! What was reported last of each BundleDeployment.

use std::collections::HashMap;

use parking_lot::Mutex;
use serde_json::Value;
use windlass_api::BundleDeploymentStatus;
use windlass_cluster::Change;

/// What was concluded last of each BundleDeployment, whether it had to be written or not: a change that only says it is
/// no news for whoever said it, or a text that is another each time would be written as fast as the API server can.
#[derive(Default)]
pub(in crate::bundle_deployment) struct Reported(Mutex<HashMap<String, BundleDeploymentStatus>>);

impl Reported {
    /// Notes what is concluded: before it is compared with what the index shows, so that a status that shows up later is
    /// either compared there, or told from this one here.
    pub(in crate::bundle_deployment) fn note(&self, name: &str, status: &BundleDeploymentStatus) {
        // As it comes back: the API server keeps no fractions of seconds.
        let shown = serde_json::to_value(status).and_then(serde_json::from_value);
        let shown = shown.unwrap_or_else(|_| status.clone());
        self.0.lock().insert(name.to_owned(), shown);
    }

    /// Whether a change of a BundleDeployment is of its status only, to what was concluded last.
    pub(in crate::bundle_deployment) fn explains(&self, change: &Change) -> bool {
        let Some((before, after)) = change.both_versions() else {
            return false;
        };
        let known = self.0.lock();
        known.get(&change.key.name).is_some_and(|concluded| {
            differs_in_status_only(&before, &after)
                && status_of(&after).is_some_and(|shown| shown == *concluded)
        })
    }

    /// Forgets a BundleDeployment that is gone.
    pub(in crate::bundle_deployment) fn forget(&self, name: &str) {
        self.0.lock().remove(name);
    }
}

/// The status of a BundleDeployment, if it can be read.
pub(in crate::bundle_deployment) fn status_of(deployment: &Value) -> Option<BundleDeploymentStatus> {
    let status = deployment.get("status").cloned();
    status.map_or(Some(BundleDeploymentStatus::default()), |status| {
        serde_json::from_value(status).ok()
    })
}

fn differs_in_status_only(before: &Value, after: &Value) -> bool {
    let rest = |version: &Value| {
        let mut rest = version.clone();
        if let Some(fields) = rest.as_object_mut() {
            fields.remove("status");
        }
        if let Some(metadata) = rest.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
            metadata.remove("managedFields");
        }
        rest
    };
    rest(before) == rest(after)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use windlass_object::{ObjectKey, names};

    use super::*;

    fn deployment(version: &str, generation: i64, message: &str) -> Value {
        json!({
            "apiVersion": names::API_VERSION, "kind": "BundleDeployment",
            "metadata": {
                "name": "a", "resourceVersion": version, "generation": generation,
                "managedFields": [{"manager": names::STATUS, "time": version}],
            },
            "status": {"observedGeneration": generation, "conditions": [{
                "type": "Ready", "status": "False", "reason": "Retrying", "message": message,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]},
        })
    }

    fn change(before: Value, after: Value) -> Change {
        Change {
            key: ObjectKey::from_object(&after).unwrap(),
            before: Some(before.into()),
            after: Some(after.into()),
        }
    }

    #[test]
    fn what_comes_back_has_whole_seconds() {
        let reported = Reported::default();
        let second = deployment("2", 1, "port 43211");
        let mut said = status_of(&second).unwrap();
        let moment = said.conditions[0].last_transition_time.0;
        said.conditions[0].last_transition_time.0 = moment + jiff::SignedDuration::from_millis(7);
        reported.note("a", &said);
        assert!(reported.explains(&change(deployment("1", 1, "port 43210"), second)));
    }

    #[test]
    fn what_we_said_ourselves_is_no_news_and_everything_else_is() {
        let reported = Reported::default();
        let (first, second) = (deployment("1", 1, "port 43210"), deployment("2", 1, "port 43211"));
        let own = change(first.clone(), second.clone());
        assert!(!reported.explains(&own), "another process may have said it");
        reported.note("a", &status_of(&second).unwrap());
        assert!(reported.explains(&own));
        // Somebody changes our status, or the watch shows one that another conclusion has followed.
        assert!(!reported.explains(&change(second.clone(), deployment("3", 1, "all is well"))));
        // Somebody changes more than that.
        let mut edited = deployment("3", 1, "port 43211");
        edited["metadata"]["annotations"] = json!({"a": "b"});
        assert!(!reported.explains(&change(second.clone(), edited)));
        assert!(!reported.explains(&change(first.clone(), deployment("3", 2, "port 43211"))));
        let gone = Change { after: None, ..own };
        assert!(!reported.explains(&gone));
        reported.forget("a");
        assert!(!reported.explains(&change(first, second)));
    }
}
