//! A cluster starts with policies that must be evaluated for every object, before a policy server is running.

use serde_json::json;

use super::{
    policies::{self, NAMESPACE},
    traffic,
};
use crate::{
    cluster, operator,
    request::send,
    steps::{self, PATIENCE, check, get, succeed, until},
    test_cluster::TestCluster,
};

/// The ServiceAccount that removes taints from nodes.
const NODE_CONTROLLER: (&str, &str) = ("kube-system", "node-controller");

const NODES: &str = "/api/v1/nodes";

/// An object that a real API server writes when it starts; it exits if it cannot.
const BOOTSTRAP_ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node-bootstrapper";

/// Checks which writes are exempt while no policy server is running.
pub(super) async fn a_cluster_starts_with_policies_for_everything_and_no_policy_server(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let operator = cluster.operator.start()?;
    policies::install(cluster).await?;
    traffic::create_namespace(cluster, NAMESPACE).await?;
    traffic::create_namespace(cluster, NODE_CONTROLLER.0).await?;
    let controller = node_controller(cluster).await?;
    let replicas = [
        policies::join(cluster, "policies-one").await?,
        policies::join(cluster, "policies-other").await?,
    ];
    for (folder, kind, rule) in [
        (
            "clusteroverridepolicies",
            "ClusterOverridePolicy",
            json!({"overrideRules": [{"overriders": {"plaintext": [{"op": "remove", "path": "/spec/nothing"}]}}]}),
        ),
        (
            "clustervalidatepolicies",
            "ClusterValidatePolicy",
            json!({"validateRules": [{"cel": {"validations": [{"expression": "true"}]}}]}),
        ),
    ] {
        let policy = json!({
            "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": kind, "metadata": {"name": "everything"}, "spec": rule,
        });
        policies::create_policy(cluster, folder, &policy).await?;
    }
    wait_for_write(cluster, NAMESPACE, "allowed", 201).await?;
    let is_bootstrapped = get(client, BOOTSTRAP_ROLE).await?.is_some();
    if is_bootstrapped {
        steps::delete(client, BOOTSTRAP_ROLE).await?;
    }
    for replica in replicas {
        replica.remove_endpoint(cluster).await?;
        replica.running.stop().await?;
    }
    operator.stop().await?;
    wait_for_write(cluster, NAMESPACE, "refused", 500).await?;

    // An API server exits if it cannot write its initial objects.
    cluster.backing.restart_api_server(client).await?;
    if is_bootstrapped {
        until("the API server has written its roles", PATIENCE, async || {
            let role = get(client, BOOTSTRAP_ROLE).await?;
            Ok(check(role.is_some(), || "the role is missing".to_owned()))
        })
        .await?;
    }
    wait_for_write(cluster, NAMESPACE, "refused", 500).await?;

    // The components that register nodes and run on every node.
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "cold"}, "spec": {"taints": [
        {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
    ]}});
    succeed(&controller, "POST", NODES, Some(&node)).await?;
    let usable = json!({"spec": {"taints": null}});
    succeed(&controller, "PATCH", &format!("{NODES}/cold"), Some(&usable)).await?;
    let labelled = json!({"metadata": {"labels": {"by": "team-a"}}});
    let answer = send(client, "PATCH", &format!("{NODES}/cold"), Some(&labelled)).await?;
    anyhow::ensure!(
        answer.code == 500,
        "a write of another client was not sent to the policy server: {answer}"
    );
    for namespace in [NODE_CONTROLLER.0, operator::NAMESPACE] {
        wait_for_write(cluster, namespace, "network", 201).await?;
    }

    // The policy server starts again, with its certificate and its Lease.
    let _operator = cluster.operator.start()?;
    let _replicas = [
        policies::join(cluster, "policies-third").await?,
        policies::join(cluster, "policies-fourth").await?,
    ];
    wait_for_write(cluster, NAMESPACE, "allowed again", 201).await?;
    succeed(client, "PATCH", &format!("{NODES}/cold"), Some(&labelled)).await?;
    steps::rotate(client, operator::NAMESPACE, policies::NAME, "leaf", PATIENCE).await?;
    wait_for_write(cluster, NAMESPACE, "allowed after a rotation", 201).await?;
    steps::delete(client, &format!("{NODES}/cold")).await
}

/// Waits until the creation of a ConfigMap returns this code: API servers observe changes of configurations
/// and endpoints with a delay.
async fn wait_for_write(cluster: &TestCluster, namespace: &str, what: &str, code: u16) -> anyhow::Result<()> {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps?dryRun=All");
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"what": what}});
    until(
        &format!("a write in {namespace} is {what}"),
        PATIENCE,
        async || {
            let answer = send(&cluster.client, "POST", &path, Some(&object)).await?;
            Ok(check(answer.code == code, || answer.to_string()))
        },
    )
    .await
}

/// Returns a client of the ServiceAccount that removes taints from nodes.
async fn node_controller(cluster: &TestCluster) -> anyhow::Result<kube::Client> {
    let (namespace, name) = NODE_CONTROLLER;
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    if get(&cluster.client, &format!("{accounts}/{name}"))
        .await?
        .is_none()
    {
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
        succeed(&cluster.client, "POST", &accounts, Some(&account)).await?;
    }
    policies::grant_everything(cluster, namespace, name).await?;
    let kubeconfig = cluster.backing.service_account(namespace, name).await?;
    cluster::client(&kubeconfig).await
}
