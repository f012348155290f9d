//! Policies apply to written objects, called by the API server.

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

/// The name of the Service and of both webhook configurations.
pub(super) const NAME: &str = "windlass-policies";

/// The namespace of the written objects.
pub(super) const NAMESPACE: &str = "platform";

pub(super) const API: &str = "/apis/policy.kcloudlabs.io/v1alpha1";

pub(super) async fn policies_override_objects_only_while_they_exist(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    install(cluster).await?;
    traffic::create_namespace(cluster, NAMESPACE).await?;
    let one = join(cluster, "policies-one").await?;
    let other = join(cluster, "policies-other").await?;
    wait_for_webhooks(cluster, MUTATING, 1).await?;
    wait_for_webhooks(cluster, VALIDATING, 1).await?;

    let all = config_map_policy("ClusterOverridePolicy", "all", "Fail");
    create_policy(cluster, "clusteroverridepolicies", &all).await?;
    let own = config_map_policy("OverridePolicy", "own", "Ignore");
    create_policy(cluster, &format!("namespaces/{NAMESPACE}/overridepolicies"), &own).await?;
    wait_for_data(cluster, NAMESPACE, &json!({"all": "all", "own": "own"})).await?;
    wait_for_data(cluster, "default", &json!({"all": "all"})).await?;

    check_invalid_policy(cluster).await?;
    check_deletion_policy(cluster).await?;

    // Requests match the remaining policy only.
    delete(client, &format!("{API}/clusteroverridepolicies/all")).await?;
    until(
        "requests are sent for the remaining policy only",
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
    wait_for_data(cluster, NAMESPACE, &json!({"own": "own"})).await?;

    // The last policy can be deleted although no server answers.
    one.remove_endpoint(cluster).await?;
    other.remove_endpoint(cluster).await?;
    delete(
        client,
        &format!("{API}/namespaces/{NAMESPACE}/overridepolicies/own"),
    )
    .await?;
    wait_for_webhooks(cluster, MUTATING, 1).await?;
    wait_for_data(cluster, NAMESPACE, &Value::Null).await?;

    let disarmed = json!({"metadata": {"annotations": {names::DISARMED: "true"}}});
    let service = format!("/api/v1/namespaces/{}/services/{NAME}", operator::NAMESPACE);
    succeed(client, "PATCH", &service, Some(&disarmed)).await?;
    gone(client, &format!("{MUTATING}/{NAME}")).await?;
    gone(client, &format!("{VALIDATING}/{NAME}")).await
}

pub(super) async fn no_write_fails_while_the_policy_server_restarts_and_rotates(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    install(cluster).await?;
    traffic::create_namespace(cluster, NAMESPACE).await?;
    let mut replicas = Vec::new();
    for pod in ["policies-one", "policies-other"] {
        replicas.push(join(cluster, pod).await?);
    }
    create_policy(
        cluster,
        "clusteroverridepolicies",
        &config_map_policy("ClusterOverridePolicy", "all", "Fail"),
    )
    .await?;
    wait_for_data(cluster, NAMESPACE, &json!({"all": "all"})).await?;
    let changing = async {
        for what in ["leaf", "ca"] {
            steps::rotate(client, operator::NAMESPACE, NAME, what, PATIENCE).await?;
        }
        // Replace both replicas: the leader, and the replica that leads after it.
        for pod in ["policies-third", "policies-fourth"] {
            let next = join(cluster, pod).await?;
            let old = replicas.remove(0);
            old.remove_endpoint(cluster).await?;
            tokio::time::sleep(PRE_STOP).await;
            old.running.stop().await?;
            replicas.push(next);
            let another = config_map_policy("ClusterOverridePolicy", pod, "Fail");
            create_policy(cluster, "clusteroverridepolicies", &another).await?;
        }
        steps::rotate(client, operator::NAMESPACE, NAME, "ca", PATIENCE).await
    };
    tokio::select! {
        changed = changing => changed,
        failed = write_until_one_fails(cluster, "one") => failed,
        failed = write_until_one_fails(cluster, "other") => failed,
    }
}

pub(super) async fn a_policy_that_always_fails_is_suspended_until_it_succeeds(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    install(cluster).await?;
    traffic::create_namespace(cluster, NAMESPACE).await?;
    let arguments = ["--policy-object-selector", "policies notin (off)"];
    let _replica = join_with(cluster, "policies-one", &arguments).await?;
    let all = config_map_policy("ClusterOverridePolicy", "all", "Fail");
    create_policy(cluster, "clusteroverridepolicies", &all).await?;
    let mut fails = config_map_policy("ClusterOverridePolicy", "fails", "Ignore");
    let expression = "[JSONPatch{op: 'add', path: '/data/fails', value: object.data.needed}]";
    fails["spec"]["overrideRules"] =
        json!([{"targetOperations": ["CREATE"], "overriders": {"cel": {"expression": expression}}}]);
    create_policy(cluster, "clusteroverridepolicies", &fails).await?;

    // Every write makes the policy fail, and none is refused.
    let is_ready = |status: &'static str, reason: &'static str, object: Value| async move {
        let maps = format!("/api/v1/namespaces/{NAMESPACE}/configmaps?dryRun=All");
        let path = format!("{API}/clusteroverridepolicies/fails");
        until(&format!("the policy reports {reason}"), PATIENCE, async || {
            let answer = send(client, "POST", &maps, Some(&object)).await?;
            anyhow::ensure!(answer.code == 201, "refused: {answer}");
            let policy = get(client, &path).await?.unwrap_or_default();
            let conditions = object::items(&policy, "/status/conditions");
            let is_reported = conditions.iter().any(|condition| {
                (text(condition, "/type"), text(condition, "/status")) == ("Ready", status)
                    && text(condition, "/reason") == reason
            });
            Ok(check(is_reported, || policy.to_string()))
        })
        .await
    };
    let object = |data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data});
    is_ready("False", "Suspended", object(json!({}))).await?;
    let events = "/apis/events.k8s.io/v1/namespaces/default/events";
    until("an event reports the suspension", PATIENCE, async || {
        let answer = send(client, "GET", events, None).await?;
        let is_reported = object::items(&answer.body, "/items")
            .iter()
            .any(|event| text(event, "/reason") == "Suspended" && text(event, "/regarding/name") == "fails");
        Ok(check(is_reported, || answer.to_string()))
    })
    .await?;
    is_ready("True", "Armed", object(json!({"needed": "a"}))).await?;
    wait_for_data(cluster, NAMESPACE, &json!({"all": "all"})).await?;

    // The policy server is not called for objects that its selector excludes.
    let mut left_out = object(json!({"needed": "a"}));
    left_out["metadata"]["labels"] = json!({"policies": "off"});
    let maps = format!("/api/v1/namespaces/{NAMESPACE}/configmaps?dryRun=All");
    let answer = succeed(client, "POST", &maps, Some(&left_out)).await?;
    anyhow::ensure!(
        answer.body["data"] == json!({"needed": "a"}),
        "the policy server was called: {answer}"
    );
    Ok(())
}

/// How long a terminating pod still serves, according to the manifests.
pub(super) const PRE_STOP: Duration = Duration::from_secs(5);

/// Starts a replica, and adds it to the endpoints when it is ready.
///
/// # Errors
///
/// When it does not become ready.
pub async fn join(cluster: &TestCluster, pod: &str) -> anyhow::Result<Replica> {
    join_with(cluster, pod, &[]).await
}

/// Like [`join`], with additional arguments.
pub(super) async fn join_with(
    cluster: &TestCluster,
    pod: &str,
    arguments: &[&str],
) -> anyhow::Result<Replica> {
    let mut operator = cluster.policies_part(pod).await?;
    operator
        .arguments
        .extend(arguments.iter().map(|argument| (*argument).to_owned()));
    let replica = Replica::start_behind(cluster, operator, NAME)?;
    replica.running.ready().await?;
    replica.add_endpoint(cluster).await?;
    Ok(replica)
}

/// Writes 25 objects per second, each with a policy that must override it. Returns an error if a write fails.
pub(super) async fn write_until_one_fails(cluster: &TestCluster, name: &str) -> anyhow::Result<()> {
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

/// Returns the CRDs of policies.
pub(super) fn policy_crds() -> impl Iterator<Item = Value> {
    manifests::policies_objects()
        .into_iter()
        .filter(|object| text(object, "/kind") == "CustomResourceDefinition")
}

/// Installs the policy server with one replica.
pub(super) async fn install_replica(cluster: &TestCluster) -> anyhow::Result<Replica> {
    install(cluster).await?;
    join(cluster, "policies-one").await
}

/// Creates all objects of the manifests except Deployments and PodDisruptionBudgets: the replicas are local
/// processes, not pods.
///
/// # Errors
///
/// When an object is refused.
pub async fn install(cluster: &TestCluster) -> anyhow::Result<()> {
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
        until("policies can be listed", PATIENCE, async || {
            let answer = send(&cluster.client, "GET", &format!("{API}/{plural}"), None).await?;
            Ok(check(answer.code == 200, || answer.to_string()))
        })
        .await?;
    }
    Ok(())
}

/// Returns a policy that adds its name to ConfigMaps.
pub(super) fn config_map_policy(kind: &str, name: &str, failure_policy: &str) -> Value {
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

/// Creates a policy, and waits until it is in force.
///
/// # Errors
///
/// When it is refused, or does not become ready in time.
pub async fn create_policy(cluster: &TestCluster, folder: &str, policy: &Value) -> anyhow::Result<()> {
    let path = format!("{API}/{folder}");
    succeed(&cluster.client, "POST", &path, Some(policy)).await?;
    let path = format!("{path}/{}", text(policy, "/metadata/name"));
    until(&format!("{path} is ready"), PATIENCE, async || {
        let policy = get(&cluster.client, &path).await?.unwrap_or_default();
        let conditions = object::items(&policy, "/status/conditions").iter();
        let is_ready = conditions
            .filter(|condition| text(condition, "/type") == "Ready")
            .any(|condition| text(condition, "/status") == "True");
        Ok(check(is_ready, || policy.to_string()))
    })
    .await
}

/// Waits until a configuration has this number of webhooks, each with a CA bundle.
pub(super) async fn wait_for_webhooks(
    cluster: &TestCluster,
    folder: &str,
    count: usize,
) -> anyhow::Result<()> {
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

/// Waits until an empty ConfigMap gets this data: API servers observe a changed configuration with a delay.
pub(super) async fn wait_for_data(
    cluster: &TestCluster,
    namespace: &str,
    data: &Value,
) -> anyhow::Result<()> {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps?dryRun=All");
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
    until(
        &format!("a new ConfigMap gets the data {data}"),
        PATIENCE,
        async || {
            let answer = send(&cluster.client, "POST", &path, Some(&object)).await?;
            let is_overridden = answer.code == 201 && answer.body["data"] == *data;
            Ok(check(is_overridden, || answer.to_string()))
        },
    )
    .await
}

/// Checks a policy from a template that requires an annotation before a deletion.
async fn check_deletion_policy(cluster: &TestCluster) -> anyhow::Result<()> {
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
    create_policy(cluster, "clustervalidatepolicies", &policy).await?;
    let path = format!("{API}/clustervalidatepolicies/confirm");
    let shown = get(client, &path).await?.unwrap_or_default();
    anyhow::ensure!(
        text(&shown, "/spec/validateRules/0/renderedCue").contains("validate:")
            && text(&shown, "/spec/validateRules/0/template/condition/affectMode") == "reject",
        "the template was not rendered: {shown}"
    );
    let maps = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}});
    succeed(client, "POST", &maps, Some(&object)).await?;
    let kept = format!("{maps}/kept");
    until("the deletion is refused", PATIENCE, async || {
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

async fn check_invalid_policy(cluster: &TestCluster) -> anyhow::Result<()> {
    let mut bad = config_map_policy("ClusterOverridePolicy", "bad", "Fail");
    bad["spec"]["overrideRules"][0]["overriders"]["plaintext"][0]["path"] = "data".into();
    bad["spec"]["resourceSelectors"] = json!([{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}]);
    let answer = send(
        &cluster.client,
        "POST",
        &format!("{API}/clusteroverridepolicies"),
        Some(&bad),
    )
    .await?;
    let message = answer.body.to_string();
    anyhow::ensure!(
        answer.code == 422
            && message.contains("spec.overrideRules[0].overriders.plaintext[0]")
            && message.contains("spec.resourceSelectors[0]"),
        "not refused: {answer}"
    );
    Ok(())
}

/// Makes a ServiceAccount a cluster-admin.
pub(super) async fn grant_everything(
    cluster: &TestCluster,
    namespace: &str,
    name: &str,
) -> anyhow::Result<()> {
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": format!("e2e-{namespace}-{name}")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": name}],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    succeed(&cluster.client, "POST", bindings, Some(&binding)).await?;
    Ok(())
}
