//! Restoration of adopted objects.

use serde_json::{Value, json};
use windlass_object::{json::fields, names, object};

/// The restored fields of the metadata.
const METADATA: [&str; 3] = ["labels", "annotations", "ownerReferences"];

/// Fields that are not restored: identity and status.
const UNCHANGED_FIELDS: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// Annotation in which Kubernetes counts the rollouts of a Deployment.
const ROLLOUT: &str = "deployment.kubernetes.io/revision";

/// Returns a live object with its recorded content, and without the managed fields of Windlass.
///
/// A CustomResourceDefinition keeps its current versions if objects are stored in versions that were not
/// recorded.
pub fn restored_object(live: &Value, recorded: &Value) -> Value {
    let mut restored = live.clone();
    let top = fields(&mut restored, &[]);
    let keeps_versions = !unknown_stored_versions(live, recorded).is_empty();
    top.retain(|name, _| UNCHANGED_FIELDS.contains(&name.as_str()) || recorded.get(name).is_some());
    for (name, value) in recorded.as_object().into_iter().flatten() {
        if !UNCHANGED_FIELDS.contains(&name.as_str()) {
            top.insert(name.clone(), value.clone());
        }
    }
    if keeps_versions {
        fields(&mut restored, &["spec"]).insert("versions".into(), live["spec"]["versions"].clone());
    }
    let metadata = fields(&mut restored, &["metadata"]);
    for field in METADATA {
        match recorded.pointer(&format!("/metadata/{field}")) {
            Some(value) => metadata.insert(field.to_owned(), value.clone()),
            None => metadata.shift_remove(field),
        };
    }
    if let Some(revision) = object::annotation(live, ROLLOUT) {
        fields(&mut restored, &["metadata", "annotations"]).insert(ROLLOUT.into(), revision.into());
    }
    let metadata = fields(&mut restored, &["metadata"]);
    if let Some(Value::Array(entries)) = metadata.get_mut("managedFields") {
        // The command line writes for the new owner.
        let is_ours = |entry: &Value| {
            object::text(entry, "/manager")
                .is_some_and(|manager| manager.starts_with("windlass-") && manager != names::COMMAND)
        };
        entries.retain(|entry| !is_ours(entry));
        if entries.is_empty() {
            // An empty list would leave the managed fields unchanged.
            entries.push(json!({}));
        }
    }
    restored
}

/// Returns the versions in which objects of a live CustomResourceDefinition are stored, but which were not
/// recorded.
pub fn unknown_stored_versions<'a>(live: &'a Value, recorded: &Value) -> Vec<&'a str> {
    if object::text(live, "/kind") != Some("CustomResourceDefinition") {
        return Vec::new();
    }
    let known = |version: &&str| {
        object::items(recorded, "/spec/versions")
            .iter()
            .any(|known| object::text(known, "/name") == Some(*version))
    };
    object::items(live, "/status/storedVersions")
        .iter()
        .filter_map(Value::as_str)
        .filter(|version| !known(version))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restored_object_keeps_its_identity() {
        let recorded = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "s", "uid": "1", "labels": {"a": "b"}}, "spec": {"selector": {"a": "b"}}});
        let live = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "s", "uid": "2", "resourceVersion": "7", "labels": {"windlass.dev/bundle-deployment": "b"},
                "annotations": {"windlass.dev/applied-as": "x", ROLLOUT: "3"}, "ownerReferences": [],
                "managedFields": [{"manager": "windlass-install"}, {"manager": "helm"}, {"manager": "windlass-command"}]},
            "spec": {"selector": {"c": "d"}}, "extra": 1, "status": {"loadBalancer": {}}});
        assert_eq!(
            restored_object(&live, &recorded),
            json!({"apiVersion": "v1", "kind": "Service",
                "metadata": {"name": "s", "uid": "2", "resourceVersion": "7", "labels": {"a": "b"},
                    "annotations": {ROLLOUT: "3"},
                    "managedFields": [{"manager": "helm"}, {"manager": "windlass-command"}]},
                "spec": {"selector": {"a": "b"}}, "status": {"loadBalancer": {}}})
        );
        let mut only_ours = live;
        only_ours["metadata"]["managedFields"] = json!([{"manager": "windlass-inject"}]);
        assert_eq!(
            restored_object(&only_ours, &recorded)["metadata"]["managedFields"],
            json!([{}])
        );
    }

    #[test]
    fn versions_with_stored_objects_stay() {
        let crd = |versions: &[&str], stored: &[&str], strategy: &str| {
            let versions: Vec<_> = versions.iter().map(|name| json!({"name": name})).collect();
            json!({"kind": "CustomResourceDefinition", "metadata": {"name": "c"},
                "spec": {"versions": versions, "conversion": {"strategy": strategy}},
                "status": {"storedVersions": stored}})
        };
        let recorded = crd(&["v1"], &["v1"], "None");
        let live = crd(&["v1", "v2"], &["v1", "v2"], "Webhook");
        assert_eq!(unknown_stored_versions(&live, &recorded), ["v2"]);
        assert_eq!(
            restored_object(&live, &recorded),
            crd(&["v1", "v2"], &["v1", "v2"], "None")
        );
        let live = crd(&["v1", "v2"], &["v1"], "Webhook");
        assert_eq!(restored_object(&live, &recorded), crd(&["v1"], &["v1"], "None"));
    }
}
