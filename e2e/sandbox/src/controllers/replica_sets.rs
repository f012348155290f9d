//! ReplicaSets: creates and deletes pods to match `spec.replicas`.

use serde_json::{Value, json};

use super::{
    claims,
    client::ControllerClient,
    objects::{
        controller_reference, is_available, is_controlled_by, is_deleting, is_finished, is_ready, name,
        namespace, number,
    },
};

/// Reconciles all ReplicaSets once.
pub(super) async fn pass(client: &ControllerClient) {
    for set in client.list("apps", "replicasets", None) {
        if !is_deleting(&set) {
            replicate(client, &set).await;
        }
        report(client, &set).await;
    }
}

async fn replicate(client: &ControllerClient, set: &Value) {
    let pods = claims::claim(client, set, ("", "pods"), |pod| !is_finished(pod)).await;
    let mut active: Vec<&Value> = pods
        .iter()
        .map(AsRef::as_ref)
        .filter(|pod| !is_deleting(pod) && !is_finished(pod))
        .collect();
    let wanted = usize::try_from(number(set, "/spec/replicas")).unwrap_or(0);
    let collection = format!("/api/v1/namespaces/{}/pods", namespace(set));
    for _ in active.len()..wanted {
        client.create(&collection, &pod(set)).await;
    }
    // The least useful pods are deleted first: without a node, not ready, the youngest.
    active.sort_by_key(|pod| {
        let assigned = pod["spec"]["nodeName"].is_string();
        let created = pod["metadata"]["creationTimestamp"].as_str().unwrap_or_default();
        (assigned, is_ready(pod), std::cmp::Reverse(created.to_owned()))
    });
    for pod in active.iter().take(active.len().saturating_sub(wanted)) {
        client.delete(&format!("{collection}/{}", name(pod))).await;
    }
}

fn pod(set: &Value) -> Value {
    let template = &set["spec"]["template"];
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": format!("{}-", name(set)),
            "labels": template["metadata"]["labels"],
            "annotations": template["metadata"]["annotations"],
            "ownerReferences": [controller_reference(set)],
        },
        "spec": template["spec"],
    })
}

async fn report(client: &ControllerClient, set: &Value) {
    let pods = client.list("", "pods", Some(namespace(set)));
    let seconds = number(set, "/spec/minReadySeconds");
    let owned = pods
        .iter()
        .filter(|pod| is_controlled_by(pod, set) && !is_deleting(pod) && !is_finished(pod));
    let (mut replicas, mut ready, mut available) = (0, 0, 0);
    for pod in owned {
        replicas += 1;
        ready += i64::from(is_ready(pod));
        available += i64::from(is_available(pod, seconds));
    }
    let status = json!({
        "replicas": replicas, "fullyLabeledReplicas": replicas, "readyReplicas": ready,
        "availableReplicas": available, "observedGeneration": set["metadata"]["generation"],
    });
    if set["status"] != status {
        let path = format!(
            "/apis/apps/v1/namespaces/{}/replicasets/{}/status",
            namespace(set),
            name(set)
        );
        client.merge(&path, &json!({"status": status})).await;
    }
}
