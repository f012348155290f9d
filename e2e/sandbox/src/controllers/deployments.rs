//! Deployments: replaces old ReplicaSets with the new one, as the strategy allows.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    claims,
    client::ControllerClient,
    objects::{
        controller_reference, is_controlled_by, is_deleting, is_finished, metadata, name, namespace, number,
        short_hash,
    },
    rollout::{Limits, Set},
};
use crate::server::{condition, now, set_condition};

const HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";
const MIN_READY_SECONDS: &str = "/spec/minReadySeconds";

/// Reconciles all Deployments once.
pub(super) async fn pass(client: &ControllerClient) {
    for deployment in client.list("apps", "deployments", None) {
        if is_deleting(&deployment) {
            continue;
        }
        let sets = Sets::claim(client, &deployment).await;
        if let Some(set) = &sets.new {
            update_new_set(client, set, &deployment, &sets.old).await;
        }
        if deployment["spec"]["paused"] != true {
            roll(client, &deployment, &sets).await;
        }
        report(client, &deployment).await;
    }
}

/// The ReplicaSets of a Deployment.
struct Sets {
    new: Option<Arc<Value>>,
    old: Vec<Arc<Value>>,
}

impl Sets {
    async fn claim(client: &ControllerClient, deployment: &Value) -> Self {
        let all = claims::claim(client, deployment, ("apps", "replicasets"), |_| true).await;
        Self::new(all, deployment)
    }

    fn list(client: &ControllerClient, deployment: &Value) -> Self {
        let mut all = client.list("apps", "replicasets", Some(namespace(deployment)));
        all.retain(|set| is_controlled_by(set, deployment));
        Self::new(all, deployment)
    }

    /// The new ReplicaSet is the oldest of those with the Deployment's template (`FindNewReplicaSet`).
    fn new(mut all: Vec<Arc<Value>>, deployment: &Value) -> Self {
        let wanted = template(&deployment["spec"]["template"]);
        all.retain(|set| !is_deleting(set));
        all.sort_by(|a, b| metadata(a, "creationTimestamp").cmp(metadata(b, "creationTimestamp")));
        let new = all
            .iter()
            .position(|set| template(&set["spec"]["template"]) == wanted)
            .map(|index| all.remove(index));
        Self { new, old: all }
    }
}

/// Returns a template without the `pod-template-hash` label.
fn template(template: &Value) -> Value {
    let mut template = template.clone();
    if let Some(labels) = template["metadata"]["labels"].as_object_mut() {
        labels.remove(HASH);
    }
    template
}

async fn roll(client: &ControllerClient, deployment: &Value, sets: &Sets) {
    let spec = &deployment["spec"];
    let limits = Limits::new(spec);
    let recreate = spec["strategy"]["type"] == "Recreate";
    let old: Vec<Set> = sets.old.iter().map(|set| measure(set)).collect();
    let new = sets.new.as_deref().map_or(
        Set {
            wanted: 0,
            available: 0,
        },
        measure,
    );
    let (wanted_new, wanted_old) = if recreate {
        let gone = old_pods(client, deployment, &sets.old) == 0;
        (
            if gone { limits.replicas } else { new.wanted },
            vec![0; old.len()],
        )
    } else {
        let up = limits.scale_up(new, &old);
        (up, limits.scale_down(Set { wanted: up, ..new }, &old))
    };
    match &sets.new {
        None => create(client, deployment, &sets.old, wanted_new).await,
        Some(set) => scale(client, set, wanted_new).await,
    }
    for (set, wanted) in sets.old.iter().zip(wanted_old) {
        scale(client, set, wanted).await;
    }
    prune_history(client, spec, &sets.old).await;
}

fn measure(set: &Value) -> Set {
    Set {
        wanted: number(set, "/spec/replicas"),
        available: number(set, "/status/availableReplicas"),
    }
}

/// Counts the pods of old ReplicaSets that still run, including terminating ones.
fn old_pods(client: &ControllerClient, deployment: &Value, old: &[Arc<Value>]) -> usize {
    let pods = client.list("", "pods", Some(namespace(deployment)));
    pods.iter()
        .filter(|pod| !is_finished(pod) && old.iter().any(|set| is_controlled_by(pod, set)))
        .count()
}

fn revision(set: &Value) -> i64 {
    set["metadata"]["annotations"][REVISION]
        .as_str()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

async fn create(client: &ControllerClient, deployment: &Value, old: &[Arc<Value>], replicas: i64) {
    let mut template = template(&deployment["spec"]["template"]);
    let hash = short_hash(&template.to_string(), 10);
    template["metadata"]["labels"][HASH] = json!(hash);
    let mut selector = deployment["spec"]["selector"].clone();
    selector["matchLabels"][HASH] = json!(hash);
    let next = old.iter().map(|set| revision(set)).max().unwrap_or(0) + 1;
    let set = json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{}-{hash}", name(deployment)),
            "labels": template["metadata"]["labels"],
            "annotations": {REVISION: next.to_string()},
            "ownerReferences": [controller_reference(deployment)],
        },
        "spec": {
            "replicas": replicas,
            "minReadySeconds": number(deployment, MIN_READY_SECONDS),
            "selector": selector,
            "template": template,
        },
    });
    client
        .create(
            &format!("/apis/apps/v1/namespaces/{}/replicasets", namespace(deployment)),
            &set,
        )
        .await;
}

/// Updates `minReadySeconds` of the new ReplicaSet, and makes it the newest revision when it is reused. Old
/// ReplicaSets stay unchanged (`getNewReplicaSet` of `pkg/controller/deployment/sync.go`).
async fn update_new_set(client: &ControllerClient, set: &Value, deployment: &Value, old: &[Arc<Value>]) {
    let mut patch = json!({});
    let newest = old.iter().map(|set| revision(set)).max().unwrap_or(0);
    if revision(set) <= newest {
        patch["metadata"]["annotations"][REVISION] = json!((newest + 1).to_string());
    }
    let seconds = number(deployment, MIN_READY_SECONDS);
    if number(set, MIN_READY_SECONDS) != seconds {
        patch["spec"]["minReadySeconds"] = json!(seconds);
    }
    if patch != json!({}) {
        client.merge(&path(set), &patch).await;
    }
}

fn path(set: &Value) -> String {
    format!(
        "/apis/apps/v1/namespaces/{}/replicasets/{}",
        namespace(set),
        name(set)
    )
}

async fn scale(client: &ControllerClient, set: &Value, replicas: i64) {
    if number(set, "/spec/replicas") != replicas {
        client
            .merge(&path(set), &json!({"spec": {"replicas": replicas}}))
            .await;
    }
}

/// Deletes old ReplicaSets beyond the history limit.
async fn prune_history(client: &ControllerClient, spec: &Value, old: &[Arc<Value>]) {
    let limit = usize::try_from(spec["revisionHistoryLimit"].as_i64().unwrap_or(10)).unwrap_or(0);
    let mut idle: Vec<_> = old
        .iter()
        .filter(|set| number(set, "/spec/replicas") == 0 && number(set, "/status/replicas") == 0)
        .collect();
    idle.sort_by_key(|set| revision(set));
    for set in idle.iter().take(idle.len().saturating_sub(limit)) {
        client.delete(&path(set)).await;
    }
}

async fn report(client: &ControllerClient, deployment: &Value) {
    let sets = Sets::list(client, deployment);
    let all = || sets.old.iter().chain(&sets.new);
    let sum = |pointer: &str| all().map(|set| number(set, pointer)).sum::<i64>();
    let replicas = number(deployment, "/spec/replicas");
    let total = sum("/status/replicas");
    let available = sum("/status/availableReplicas");
    let updated = sets
        .new
        .as_deref()
        .map_or(0, |set| number(set, "/status/replicas"));
    let mut shown = json!({"status": {
        "observedGeneration": deployment["metadata"]["generation"],
        "replicas": total, "updatedReplicas": updated, "readyReplicas": sum("/status/readyReplicas"),
        "availableReplicas": available, "unavailableReplicas": (total.max(replicas) - available).max(0),
        "conditions": deployment["status"]["conditions"],
    }});
    let limits = Limits::new(&deployment["spec"]);
    let enough = available
        >= replicas
            - if deployment["spec"]["strategy"]["type"] == "Recreate" {
                0
            } else {
                limits.unavailable
            };
    if enough {
        set_condition(
            &mut shown,
            "Available",
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        );
    } else {
        let message = "Deployment does not have minimum availability.";
        set_condition(
            &mut shown,
            "Available",
            "False",
            "MinimumReplicasUnavailable",
            message,
        );
    }
    let complete = updated == replicas && total == replicas && available == replicas;
    set_progressing(deployment, &mut shown, complete, &sets);
    if let Some(set) = &sets.new {
        annotate(client, deployment, set).await;
    }
    if without_times(&shown["status"]) != without_times(&deployment["status"]) {
        set_condition_times(&mut shown, deployment);
        let path = format!(
            "/apis/apps/v1/namespaces/{}/deployments/{}/status",
            namespace(deployment),
            name(deployment)
        );
        client.merge(&path, &shown).await;
    }
}

/// Sets the revision annotation of the Deployment.
async fn annotate(client: &ControllerClient, deployment: &Value, set: &Value) {
    let revision = &set["metadata"]["annotations"][REVISION];
    if deployment["metadata"]["annotations"][REVISION] != *revision {
        let path = format!(
            "/apis/apps/v1/namespaces/{}/deployments/{}",
            namespace(deployment),
            name(deployment)
        );
        client
            .merge(&path, &json!({"metadata": {"annotations": {REVISION: revision}}}))
            .await;
    }
}

fn set_progressing(deployment: &Value, shown: &mut Value, complete: bool, sets: &Sets) {
    let set = sets.new.as_deref().map(name).unwrap_or_default();
    if complete {
        let message = format!("ReplicaSet {set:?} has successfully progressed.");
        return set_condition(shown, "Progressing", "True", "NewReplicaSetAvailable", &message);
    }
    let moved = [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
    ]
    .iter()
    .any(|field| shown["status"][*field] != deployment["status"][*field]);
    let conditions = deployment["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    let since = conditions
        .filter(|condition| condition["type"] == "Progressing")
        .find_map(|condition| condition["lastUpdateTime"].as_str()?.parse::<Timestamp>().ok());
    let deadline = deployment["spec"]["progressDeadlineSeconds"]
        .as_i64()
        .unwrap_or(600);
    let late = since.is_some_and(|since| Timestamp::now().as_second() - since.as_second() > deadline);
    let failed = condition(deployment, "Progressing") == Some("False");
    if !moved && (late || failed) {
        let message = format!("ReplicaSet {set:?} has timed out progressing.");
        return set_condition(
            shown,
            "Progressing",
            "False",
            "ProgressDeadlineExceeded",
            &message,
        );
    }
    set_condition(
        shown,
        "Progressing",
        "True",
        "ReplicaSetUpdated",
        &format!("ReplicaSet {set:?} is progressing."),
    );
}

fn without_times(status: &Value) -> Value {
    let mut status = status.clone();
    for condition in status["conditions"]
        .as_array_mut()
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        condition.remove("lastUpdateTime");
        condition.remove("lastTransitionTime");
    }
    status
}

/// Sets the times of new and changed conditions.
fn set_condition_times(shown: &mut Value, deployment: &Value) {
    for condition in shown["status"]["conditions"].as_array_mut().into_iter().flatten() {
        let before = deployment["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten();
        let same = before
            .filter(|old| condition["type"] == "Available" && old["type"] == "Available")
            .find(|old| old["status"] == condition["status"] && old["lastUpdateTime"].is_string());
        condition["lastUpdateTime"] = match same {
            Some(old) => old["lastUpdateTime"].clone(),
            None => json!(now()),
        };
    }
}
