//! Policies: what they say is asked when objects are written, by an API server and nobody else.

use std::time::Duration;

use serde_json::{Value, json};
use windlass::commands::manifests;
use windlass_object::{names, object};

use super::{guard::replicas::Replica, traffic};
use crate::{
    operator,
    request::{send, text},
    steps::{self, MUTATING, PATIENCE, VALIDATING, check, delete, get, gone, succeed, until},
    test_cluster::TestCluster,
};

/// The Service, and both configurations.
pub(super) const NAME: &str = "windlass-policies";

/// Where objects are written.
pub(super) const NAMESPACE: &str = "platform";

pub(super) const API: &str = "/apis/policy.kcloudlabs.io/v1alpha1";

pub(super) async fn what_is_written_is_overridden_by_policies_and_no_longer_than_they_are_there(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    install(cluster).await?;
    traffic::namespace(cluster, NAMESPACE).await?;
    let one = join(cluster, "policies-one").await?;
    let other = join(cluster, "policies-other").await?;
    webhooks(cluster, MUTATING, 1).await?;
    webhooks(cluster, VALIDATING, 1).await?;

    let all = policy("ClusterOverridePolicy", "all", "Fail");
    ready(cluster, "clusteroverridepolicies", &all).await?;
    let own = policy("OverridePolicy", "own", "Ignore");
    ready(cluster, &format!("namespaces/{NAMESPACE}/overridepolicies"), &own).await?;
    overridden(cluster, NAMESPACE, &json!({"all": "all", "own": "own"})).await?;
    overridden(cluster, "default", &json!({"all": "all"})).await?;

    bad_policies_are_refused(cluster).await?;
    deletions_are_confirmed(cluster).await?;

    // What is left of them is what is asked.
    delete(client, &format!("{API}/clusteroverridepolicies/all")).await?;
    until(
        "requests are sent to the other policy only",
        PATIENCE,
        async || {
            let configuration = get(client, &format!("{MUTATING}/{NAME}"))
                .await?
                .unwrap_or_default();
            let failing = object::items(&configuration, "/webhooks")
                .iter()
                .filter(|webhook| text(webhook, "/name").starts_with("fail"));
            Ok(check(failing.count() == 0, || configuration.to_string()))
        },
    )
    .await?;
    overridden(cluster, NAMESPACE, &json!({"own": "own"})).await?;

    // Nobody answers any more, and the last policy can be deleted all the same.
    one.leave(cluster).await?;
    other.leave(cluster).await?;
    delete(
        client,
        &format!("{API}/namespaces/{NAMESPACE}/overridepolicies/own"),
    )
    .await?;
    webhooks(cluster, MUTATING, 1).await?;
    overridden(cluster, NAMESPACE, &Value::Null).await?;

    let disarmed = json!({"metadata": {"annotations": {names::DISARMED: "true"}}});
    let service = format!("/api/v1/namespaces/{}/services/{NAME}", operator::NAMESPACE);
    succeed(client, "PATCH", &service, Some(&disarmed)).await?;
    gone(client, &format!("{MUTATING}/{NAME}")).await?;
    gone(client, &format!("{VALIDATING}/{NAME}")).await
}

pub(super) async fn no_write_fails_while_what_serves_policies_restarts_and_rotates(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    install(cluster).await?;
    traffic::namespace(cluster, NAMESPACE).await?;
    let mut replicas = Vec::new();
    for pod in ["policies-one", "policies-other"] {
        replicas.push(join(cluster, pod).await?);
    }
    ready(
        cluster,
        "clusteroverridepolicies",
        &policy("ClusterOverridePolicy", "all", "Fail"),
    )
    .await?;
    overridden(cluster, NAMESPACE, &json!({"all": "all"})).await?;
    let changing = async {
        for what in ["leaf", "ca"] {
            steps::rotate(client, operator::NAMESPACE, NAME, what, PATIENCE).await?;
        }
        // The leader, and the other that leads since.
        for pod in ["policies-third", "policies-fourth"] {
            let next = join(cluster, pod).await?;
            let old = replicas.remove(0);
            old.leave(cluster).await?;
            tokio::time::sleep(PRE_STOP).await;
            old.running.stop().await?;
            replicas.push(next);
            let another = policy("ClusterOverridePolicy", pod, "Fail");
            ready(cluster, "clusteroverridepolicies", &another).await?;
        }
        steps::rotate(client, operator::NAMESPACE, NAME, "ca", PATIENCE).await
    };
    tokio::select! {
        changed = changing => changed,
        failed = write_until_one_fails(cluster, "one") => failed,
        failed = write_until_one_fails(cluster, "other") => failed,
    }
}

/// How long a pod goes on after it was told that it ends, as the manifests have it.
const PRE_STOP: Duration = Duration::from_secs(5);

/// Starts a replica, and makes it an endpoint when it is ready.
async fn join(cluster: &TestCluster, pod: &str) -> anyhow::Result<Replica> {
    let replica = Replica::start_of(cluster, cluster.policies_part(pod).await?, NAME)?;
    replica.running.ready().await?;
    replica.be_endpoint(cluster).await?;
    Ok(replica)
}

/// Writes 25 objects a second, each of which a policy that must not fail has to override.
async fn write_until_one_fails(cluster: &TestCluster, name: &str) -> anyhow::Result<()> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps?dryRun=All");
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    let mut due = tokio::time::interval(Duration::from_millis(40));
    let mut count = 0;
    loop {
        due.tick().await;
        let answer = send(&cluster.client, "POST", &path, Some(&object)).await?;
        anyhow::ensure!(
            answer.code == 201 && answer.body["data"]["all"] == "all",
            "write {count} failed: {answer}"
        );
        count += 1;
    }
}

/// Everything in the manifests but the processes, which run here, and are no pods.
pub(super) async fn install(cluster: &TestCluster) -> anyhow::Result<()> {
    for mut object in manifests::policies_objects() {
        let folder = match text(&object, "/kind") {
            "Deployment" | "PodDisruptionBudget" => continue,
            "CustomResourceDefinition" => {
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned()
            }
            "Service" | "ServiceAccount" => format!(
                "/api/v1/namespaces/{}/{}s",
                operator::NAMESPACE,
                text(&object, "/kind").to_lowercase()
            ),
            kind => {
                let plural = format!("{}s", kind.to_lowercase());
                let namespace = object::text(&object, "/metadata/namespace");
                let within = namespace
                    .map(|name| format!("/namespaces/{name}"))
                    .unwrap_or_default();
                format!("/apis/rbac.authorization.k8s.io/v1{within}/{plural}")
            }
        };
        if text(&object, "/kind") == "Service"
            && let Some(spec) = object["spec"].as_object_mut()
        {
            spec.remove("selector");
        }
        succeed(&cluster.client, "POST", &folder, Some(&object)).await?;
    }
    for plural in [
        "clusteroverridepolicies",
        "overridepolicies",
        "clustervalidatepolicies",
    ] {
        until("policies are served", PATIENCE, async || {
            let answer = send(&cluster.client, "GET", &format!("{API}/{plural}"), None).await?;
            Ok(check(answer.code == 200, || answer.to_string()))
        })
        .await?;
    }
    Ok(())
}

/// A policy that puts its name into ConfigMaps.
fn policy(kind: &str, name: &str, failure_policy: &str) -> Value {
    json!({
        "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": kind, "metadata": {"name": name},
        "spec": {
            "failurePolicy": failure_policy,
            "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap"}],
            "overrideRules": [{"targetOperations": ["CREATE"], "overriders": {"plaintext": [
                {"op": "add", "path": format!("/data/{name}"), "value": name},
            ]}}],
        },
    })
}

/// Creates a policy, and waits until it is asked.
pub(super) async fn ready(cluster: &TestCluster, folder: &str, policy: &Value) -> anyhow::Result<()> {
    let path = format!("{API}/{folder}");
    succeed(&cluster.client, "POST", &path, Some(policy)).await?;
    let path = format!("{path}/{}", text(policy, "/metadata/name"));
    until(&format!("{path} is asked"), PATIENCE, async || {
        let policy = get(&cluster.client, &path).await?.unwrap_or_default();
        let conditions = object::items(&policy, "/status/conditions").iter();
        let is_ready = conditions
            .filter(|condition| text(condition, "/type") == "Ready")
            .any(|condition| text(condition, "/status") == "True");
        Ok(check(is_ready, || policy.to_string()))
    })
    .await
}

/// Waits until a configuration has so many webhooks, each with a CA bundle.
async fn webhooks(cluster: &TestCluster, folder: &str, count: usize) -> anyhow::Result<()> {
    let path = format!("{folder}/{NAME}");
    until(&format!("{path} has {count} webhooks"), PATIENCE, async || {
        let configuration = get(&cluster.client, &path).await?.unwrap_or_default();
        let webhooks = object::items(&configuration, "/webhooks");
        let are_trusted = webhooks
            .iter()
            .all(|webhook| !text(webhook, "/clientConfig/caBundle").is_empty());
        Ok(check(webhooks.len() == count && are_trusted, || {
            configuration.to_string()
        }))
    })
    .await
}

/// Waits until an empty ConfigMap gets this data. An API server learns of a configuration a moment after it is there.
async fn overridden(cluster: &TestCluster, namespace: &str, data: &Value) -> anyhow::Result<()> {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps?dryRun=All");
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
    until(&format!("what is written gets {data}"), PATIENCE, async || {
        let answer = send(&cluster.client, "POST", &path, Some(&object)).await?;
        let is_overridden = answer.code == 201 && answer.body["data"] == *data;
        Ok(check(is_overridden, || answer.to_string()))
    })
    .await
}

/// What is deleted has to be annotated first, as a template says.
async fn deletions_are_confirmed(cluster: &TestCluster) -> anyhow::Result<()> {
    let client = &cluster.client;
    let condition = json!({
        "cond": "NotExist", "message": "annotate it with confirmed first",
        "dataRef": {"from": "current", "path": "/metadata/annotations/confirmed"},
    });
    let policy = json!({
        "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": "ClusterValidatePolicy", "metadata": {"name": "confirm"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "namespace": NAMESPACE}],
            "validateRules": [{
                "targetOperations": ["DELETE"], "template": {"type": "condition", "condition": condition},
            }],
        },
    });
    ready(cluster, "clustervalidatepolicies", &policy).await?;
    let path = format!("{API}/clustervalidatepolicies/confirm");
    let shown = get(client, &path).await?.unwrap_or_default();
    anyhow::ensure!(
        text(&shown, "/spec/validateRules/0/renderedCue").contains("validate:")
            && text(&shown, "/spec/validateRules/0/template/condition/affectMode") == "reject",
        "not filled in: {shown}"
    );
    let maps = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}});
    succeed(client, "POST", &maps, Some(&object)).await?;
    let kept = format!("{maps}/kept");
    until("a deletion is refused", PATIENCE, async || {
        let answer = send(client, "DELETE", &format!("{kept}?dryRun=All"), None).await?;
        let is_refused = answer.code == 403
            && answer
                .body
                .to_string()
                .contains("annotate it with confirmed first");
        Ok(check(is_refused, || answer.to_string()))
    })
    .await?;
    let confirmed = json!({"metadata": {"annotations": {"confirmed": "yes"}}});
    succeed(client, "PATCH", &kept, Some(&confirmed)).await?;
    delete(client, &kept).await?;
    delete(client, &path).await
}

async fn bad_policies_are_refused(cluster: &TestCluster) -> anyhow::Result<()> {
    let mut bad = policy("ClusterOverridePolicy", "bad", "Fail");
    bad["spec"]["overrideRules"][0]["overriders"]["plaintext"][0]["path"] = "data".into();
    bad["spec"]["resourceSelectors"] = json!([{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}]);
    let answer = send(
        &cluster.client,
        "POST",
        &format!("{API}/clusteroverridepolicies"),
        Some(&bad),
    )
    .await?;
    let said = answer.body.to_string();
    anyhow::ensure!(
        answer.code == 422
            && said.contains("spec.overrideRules[0].overriders.plaintext[0]")
            && said.contains("spec.resourceSelectors[0]"),
        "not refused: {answer}"
    );
    Ok(())
}
