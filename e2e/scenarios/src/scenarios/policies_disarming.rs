//! Policies are turned off without a failed write.

use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use windlass::commands::manifests;

use super::{
    policies::{
        NAME, NAMESPACE, config_map_policy, create_policy, install, join, wait_for_data,
        write_until_one_fails,
    },
    traffic,
};
use crate::{
    command::Command,
    operator,
    request::{send, text},
    steps::{MUTATING, VALIDATING, delete, get},
    test_cluster::{self, TestCluster},
};

pub(super) async fn policies_are_disarmed_before_their_server_is_removed(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    install(cluster).await?;
    traffic::create_namespace(cluster, NAMESPACE).await?;
    let command = hook_command(cluster).await?;
    let replica = join(cluster, "policies-one").await?;
    let all = config_map_policy("ClusterOverridePolicy", "all", "Fail");
    create_policy(cluster, "clusteroverridepolicies", &all).await?;
    wait_for_data(cluster, NAMESPACE, &json!({"all": "all"})).await?;

    let service = format!("/api/v1/namespaces/{}/services/{NAME}", operator::NAMESPACE);
    let live = get(&cluster.client, &service).await?.context("no Service")?;
    let turning_off = async {
        command.succeed(&["policy", "disarm"]).await?;
        // In the order of Helm: first the Service, then the pods.
        delete(&cluster.client, &service).await?;
        replica.remove_endpoint(cluster).await?;
        replica.running.kill().await?;
        tokio::time::sleep(Duration::from_secs(2)).await;
        anyhow::Ok(())
    };
    tokio::select! {
        off = turning_off => off?,
        failed = write_until_one_is_refused(cluster) => failed?,
    }
    anyhow::ensure!(
        are_configurations_deleted(cluster).await?,
        "a webhook configuration was left"
    );

    // The policies are armed again; then the servers end first, as in a power loss.
    let mut service = live;
    for field in ["resourceVersion", "uid", "creationTimestamp", "managedFields"] {
        service["metadata"]
            .as_object_mut()
            .map(|metadata| metadata.shift_remove(field));
    }
    test_cluster::apply(&cluster.client, &service).await?;
    let replica = join(cluster, "policies-other").await?;
    cluster.command.succeed(&["policy", "disarm", "--undo"]).await?;
    wait_for_data(cluster, NAMESPACE, &json!({"all": "all"})).await?;
    replica.running.kill().await?;
    let refused = write_until_one_fails(cluster, "c").await;
    anyhow::ensure!(
        refused.is_err(),
        "writes succeed although no policy server is running"
    );
    command.succeed(&["policy", "disarm"]).await?;
    anyhow::ensure!(
        are_configurations_deleted(cluster).await?,
        "a webhook configuration was left"
    );
    wait_for_data(cluster, NAMESPACE, &Value::Null).await
}

/// Returns the command with the permissions of the chart's hook.
async fn hook_command(cluster: &TestCluster) -> anyhow::Result<Command> {
    let mut account = None;
    for object in manifests::policy_disarm_hook_objects() {
        match text(&object, "/kind") {
            "Job" => continue,
            "ServiceAccount" => account = Some(text(&object, "/metadata/name").to_owned()),
            _ => {}
        }
        test_cluster::apply(&cluster.client, &object).await?;
    }
    let account = account.context("the hook has no ServiceAccount")?;
    let kubeconfig = cluster
        .backing
        .service_account(operator::NAMESPACE, &account)
        .await?;
    Ok(Command {
        kubeconfig: cluster.write("disarming.kubeconfig", &kubeconfig)?,
        ..cluster.command.clone()
    })
}

async fn are_configurations_deleted(cluster: &TestCluster) -> anyhow::Result<bool> {
    for folder in [MUTATING, VALIDATING] {
        if get(&cluster.client, &format!("{folder}/{NAME}")).await?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes objects that policies may change. Returns an error if a write is refused.
async fn write_until_one_is_refused(cluster: &TestCluster) -> anyhow::Result<()> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps?dryRun=All");
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "written"}});
    let mut due = tokio::time::interval(Duration::from_millis(20));
    loop {
        due.tick().await;
        let answer = send(&cluster.client, "POST", &path, Some(&object)).await?;
        anyhow::ensure!(answer.code == 201, "{answer}");
    }
}
