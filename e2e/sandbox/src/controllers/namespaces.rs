//! Namespace deletion: deletes the content of terminating namespaces.

use serde_json::{Value, json};

use super::{client::ControllerClient, objects::is_deleting};
use crate::{
    server::{condition, set_condition},
    storage::{StorageKey, version},
};

/// Reconciles all terminating Namespaces once.
pub(super) fn pass(client: &ControllerClient) {
    for namespace in client.list("", "namespaces", None) {
        if is_deleting(&namespace) {
            delete_content(client, &namespace);
        }
    }
}

fn delete_content(client: &ControllerClient, namespace: &Value) {
    let name = namespace["metadata"]["name"].as_str().unwrap_or_default();
    let content = |client: &ControllerClient| -> Vec<_> {
        client
            .store()
            .all_objects()
            .into_iter()
            .filter(|(key, _)| key.namespace == name)
            .collect()
    };
    for (key, object) in content(client) {
        client.server().delete(&key, &object, "Background");
    }
    let left = content(client);
    let key = StorageKey {
        group: String::new(),
        resource: "namespaces".to_owned(),
        namespace: String::new(),
        name: name.to_owned(),
    };
    let Some(stored) = client.store().read(&key) else {
        return;
    };
    let mut changed = stored.as_ref().clone();
    if left.is_empty() {
        let finalizers = changed["spec"]["finalizers"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        changed["spec"]["finalizers"] = finalizers
            .into_iter()
            .filter(|entry| entry != "kubernetes")
            .collect();
    } else {
        report_remaining(
            &mut changed,
            &left
                .iter()
                .map(|(key, object)| (key, object.as_ref()))
                .collect::<Vec<_>>(),
        );
    }
    if changed != *stored
        && client
            .store()
            .replace(key.clone(), changed, version(&stored))
            .is_ok()
    {
        client.server().release(&key);
    }
}

/// Reports the remaining objects and their finalizers in the conditions of the namespace.
fn report_remaining(namespace: &mut Value, left: &[(&StorageKey, &Value)]) {
    let qualified = |key: &StorageKey| format!("{}.{}", key.resource, key.group);
    let mut kinds: Vec<String> = left.iter().map(|(key, _)| qualified(key)).collect();
    kinds.sort();
    kinds.dedup();
    let counts: Vec<String> = kinds
        .iter()
        .map(|kind| {
            format!(
                "{kind} has {} resource instances",
                left.iter().filter(|(key, _)| qualified(key) == *kind).count()
            )
        })
        .collect();
    let message = format!("Some resources are remaining: {}", counts.join(", "));
    update(
        namespace,
        "NamespaceContentRemaining",
        "True",
        "SomeResourcesRemain",
        &message,
    );
    let mut finalizers: Vec<&str> = left
        .iter()
        .flat_map(|(_, object)| object["metadata"]["finalizers"].as_array().into_iter().flatten())
        .filter_map(Value::as_str)
        .collect();
    finalizers.sort_unstable();
    finalizers.dedup();
    if !finalizers.is_empty() {
        let message = format!(
            "Some content in the namespace has finalizers remaining: {}",
            finalizers.join(", ")
        );
        update(
            namespace,
            "NamespaceFinalizersRemaining",
            "True",
            "SomeFinalizersRemain",
            &message,
        );
    }
}

fn update(namespace: &mut Value, condition_type: &str, status: &str, reason: &str, message: &str) {
    let conditions = namespace["status"]["conditions"].as_array().into_iter().flatten();
    let same = conditions
        .filter(|entry| entry["type"] == condition_type)
        .any(|entry| entry["message"] == message);
    if !same || condition(namespace, condition_type) != Some(status) {
        set_condition(namespace, condition_type, status, reason, message);
    }
    namespace["status"]["phase"] = json!("Terminating");
}
