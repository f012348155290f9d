//! Unusable kubeconfigs of a second cluster, and changed ones.

use anyhow::Context;
use serde_json::json;

use super::{
    super::injection::{self, create_certificate},
    second_cluster::{
        ACCOUNT, SECRET, SecondCluster, remote_operator, secret, secrets, wait_for_condition, wait_for_event,
    },
};
use crate::{
    steps::{PATIENCE, check, get, request_rotation, serving_certificates, succeed, until},
    test_cluster::TestCluster,
};

pub(in crate::scenarios) async fn an_unusable_kubeconfig_is_named_and_delays_no_local_target(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let second = SecondCluster::start().await?;
    let operator = remote_operator(cluster).start()?;
    create_certificate(cluster).await?;
    let path = format!("{}/hook", serving_certificates(injection::NAMESPACE));
    let message = wait_for_condition(client, &path, "Trusted", "TargetsUnlisted").await?;
    anyhow::ensure!(message.contains("karmada-kubeconfig: not found"), "{message}");
    wait_for_event(client, "RemoteClusterUnavailable", "not found").await?;
    let metrics = operator.ask("/metrics").await?;
    let unlisted = "windlass_unlisted_kinds{kind=\"v1, Kind=ConfigMap in the remote cluster\"} 1";
    anyhow::ensure!(metrics.contains(unlisted), "{metrics}");

    let hostile = second.kubeconfig().replace(
        "  user:\n    token: ",
        "  user:\n    exec: {command: touch, args: [/tmp/windlass-was-here], apiVersion: client.authentication.k8s.io/v1}\n    token: ",
    );
    anyhow::ensure!(hostile.contains("exec"), "{hostile}");
    succeed(client, "POST", &secrets(), Some(&secret(&hostile))).await?;
    wait_for_event(
        client,
        "RemoteClusterUnavailable",
        "karmada.config: users[0].user.exec: not allowed",
    )
    .await?;
    let config_map = json!({
        "metadata": {"name": "trust", "annotations": {"windlass.dev/inject-ca-from": format!("{}/hook", injection::NAMESPACE)}},
    });
    let config_maps = format!("/api/v1/namespaces/{}/configmaps", injection::NAMESPACE);
    succeed(client, "POST", &config_maps, Some(&config_map)).await?;
    until("a local target gets its trust bundle", PATIENCE, async || {
        let target = get(client, &format!("{config_maps}/trust"))
            .await?
            .context("gone")?;
        Ok(check(target["data"].is_object(), || target.to_string()))
    })
    .await?;

    second.create_targets(injection::NAMESPACE, "hook").await?;
    let path_of_secret = format!("{}/{SECRET}", secrets());
    let serving = format!("/api/v1/namespaces/{}/secrets/hook-cert", injection::NAMESPACE);
    let good = secret(&second.kubeconfig());
    succeed(client, "PUT", &path_of_secret, Some(&good)).await?;
    let first = second.wait_for_ca_bundles(client, &serving).await?;
    wait_for_condition(client, &path, "Trusted", "Current").await?;

    // The credentials are replaced.
    let other = secret(&second.create_account("another").await?);
    succeed(client, "PUT", &path_of_secret, Some(&other)).await?;
    let binding = format!("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{ACCOUNT}");
    succeed(&second.client, "DELETE", &binding, None).await?;
    request_rotation(client, injection::NAMESPACE, "hook", "ca:compromised").await?;
    second.wait_for_new_ca_bundles(client, &serving, &first).await?;
    Ok(())
}
