//! Policies are turned off, and no write waits for an answer that does not come.

use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use windlass::commands::manifests;

use super::{
    policies::{NAME, NAMESPACE, install, join, overridden, policy, ready, write_until_one_fails},
    traffic,
};
use crate::{
    command::Command,
    operator,
    request::{send, text},
    steps::{MUTATING, VALIDATING, delete, get},
    test_cluster::{self, TestCluster},
};

pub(super) async fn policies_are_disarmed_before_what_answers_for_them_goes(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    install(cluster).await?;
    traffic::namespace(cluster, NAMESPACE).await?;
    let command = as_helm_runs_it(cluster).await?;
    let replica = join(cluster, "policies-one").await?;
    let all = policy("ClusterOverridePolicy", "all", "Fail");
    ready(cluster, "clusteroverridepolicies", &all).await?;
    overridden(cluster, NAMESPACE, &json!({"all": "all"})).await?;

    let service = format!("/api/v1/namespaces/{}/services/{NAME}", operator::NAMESPACE);
    let there = get(&cluster.client, &service).await?.context("no Service")?;
    let turning_off = async {
        command.succeed(&["policy", "disarm"]).await?;
        // As Helm does: first the Service, then the pods.
        delete(&cluster.client, &service).await?;
        replica.leave(cluster).await?;
        replica.running.kill().await?;
        tokio::time::sleep(Duration::from_secs(2)).await;
        anyhow::Ok(())
    };
    tokio::select! {
        off = turning_off => off?,
        failed = write_until_one_is_refused(cluster) => failed?,
    }
    anyhow::ensure!(are_gone(cluster).await?, "a configuration was left");

    // They come back, and this time their servers end first, as in a power cut.
    let mut service = there;
    for field in ["resourceVersion", "uid", "creationTimestamp", "managedFields"] {
        service["metadata"]
            .as_object_mut()
            .map(|metadata| metadata.shift_remove(field));
    }
    test_cluster::apply(&cluster.client, &service).await?;
    let replica = join(cluster, "policies-other").await?;
    cluster.command.succeed(&["policy", "disarm", "--undo"]).await?;
    overridden(cluster, NAMESPACE, &json!({"all": "all"})).await?;
    replica.running.kill().await?;
    let refused = write_until_one_fails(cluster, "c").await;
    anyhow::ensure!(refused.is_err(), "nobody answers, and nothing is refused");
    command.succeed(&["policy", "disarm"]).await?;
    anyhow::ensure!(are_gone(cluster).await?, "a configuration was left");
    overridden(cluster, NAMESPACE, &Value::Null).await
}

/// The command with the rights that it has as a hook of the chart.
async fn as_helm_runs_it(cluster: &TestCluster) -> anyhow::Result<Command> {
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

async fn are_gone(cluster: &TestCluster) -> anyhow::Result<bool> {
    for folder in [MUTATING, VALIDATING] {
        if get(&cluster.client, &format!("{folder}/{NAME}")).await?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes, with or without policies.
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
