//! Kubeconfigs of a second cluster that cannot be used, and others in their place.

use anyhow::Context;
use serde_json::json;

use super::{
    super::injection::{self, create_certificate},
    second_cluster::{ACCOUNT, SECRET, Second, is_told, says, secret, secrets, told_operator},
};
use crate::{
    steps::{PATIENCE, check, get, request_rotation, serving_certificates, succeed, until},
    test_cluster::TestCluster,
};

pub(in crate::scenarios) async fn a_kubeconfig_that_cannot_be_used_is_named_and_holds_nothing_up_here(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let second = Second::start().await?;
    let operator = told_operator(cluster).start()?;
    create_certificate(cluster).await?;
    let path = format!("{}/hook", serving_certificates(injection::NAMESPACE));
    let message = says(client, &path, "Trusted", "TargetsUnlisted").await?;
    anyhow::ensure!(message.contains("karmada-kubeconfig: not found"), "{message}");
    is_told(client, "RemoteClusterUnavailable", "not found").await?;
    let metrics = operator.ask("/metrics").await?;
    let unlisted = "windlass_unlisted_kinds{kind=\"v1, Kind=ConfigMap in the remote cluster\"} 1";
    anyhow::ensure!(metrics.contains(unlisted), "{metrics}");

    let hostile = second.kubeconfig().replace(
        "  user:\n    token: ",
        "  user:\n    exec: {command: touch, args: [/tmp/windlass-was-here], apiVersion: client.authentication.k8s.io/v1}\n    token: ",
    );
    anyhow::ensure!(hostile.contains("exec"), "{hostile}");
    succeed(client, "POST", &secrets(), Some(&secret(&hostile))).await?;
    is_told(
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
    until("a target here gets its trust bundle", PATIENCE, async || {
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
    let first = second.carries(client, &serving).await?;
    says(client, &path, "Trusted", "Current").await?;

    // Other credentials take the place of those.
    let other = secret(&second.account("another").await?);
    succeed(client, "PUT", &path_of_secret, Some(&other)).await?;
    let binding = format!("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{ACCOUNT}");
    succeed(&second.client, "DELETE", &binding, None).await?;
    request_rotation(client, injection::NAMESPACE, "hook", "ca:compromised").await?;
    second.carries_other(client, &serving, &first).await?;
    Ok(())
}
