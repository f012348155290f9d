//! Targets of a second cluster get their CA bundles.

use anyhow::Context;
use serde_json::json;

use super::{
    super::{
        foreign,
        injection::{self, create_certificate},
    },
    second_cluster::{SecondCluster, remote_operator, secret, secrets, wait_for_event},
};
use crate::{
    operator,
    request::text,
    steps::{PATIENCE, VALIDATING, check, get, request_rotation, serving_certificates, succeed, until},
    test_cluster::TestCluster,
};

pub(in crate::scenarios) async fn targets_of_a_second_cluster_are_managed_like_local_ones(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let second = SecondCluster::start().await?;
    succeed(client, "POST", &secrets(), Some(&secret(&second.kubeconfig()))).await?;
    let operator = remote_operator(cluster);
    let leader = operator.replica("one").start()?;
    create_certificate(cluster).await?;
    second.create_targets(injection::NAMESPACE, "hook").await?;
    let serving = format!("/api/v1/namespaces/{}/secrets/hook-cert", injection::NAMESPACE);
    let first = second.wait_for_ca_bundles(client, &serving).await?;
    let path = format!("{}/hook", serving_certificates(injection::NAMESPACE));
    until("all targets are counted as current", PATIENCE, async || {
        let status = &get(client, &path).await?.context("gone")?["status"];
        Ok(check(
            status["targets"] == json!({"total": 3, "current": 3}),
            || status.to_string(),
        ))
    })
    .await?;

    let hooks = format!("{VALIDATING}/remote");
    for broken in ["", "Z2FyYmFnZQ=="] {
        let drift = json!([{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": broken}]);
        succeed(&second.client, "PATCH", &hooks, Some(&drift)).await?;
        second.wait_for_ca_bundles(client, &serving).await?;
    }
    request_rotation(client, injection::NAMESPACE, "hook", "ca:compromised").await?;
    second.wait_for_new_ca_bundles(client, &serving, &first).await?;

    let standby = operator.replica("other").start()?;
    standby.ready().await?;
    leader.crash().await?;
    let drift = json!([{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]);
    succeed(&second.client, "PATCH", &hooks, Some(&drift)).await?;
    second.wait_for_ca_bundles(client, &serving).await?;
    anyhow::ensure!(!standby.leads().await?, "the other replica is already the leader");

    // CA sources are in the first cluster.
    let source = json!({
        "metadata": {"name": "ca", "annotations": {"windlass.dev/allow-direct-injection": "true"}},
        "data": {"ca.crt": foreign::trust_bundle()?},
    });
    succeed(client, "POST", &secrets(), Some(&source)).await?;
    let asks = |annotation: &str, value: &str| {
        let mut annotations = json!({
            "windlass.dev/inject-ca-from": null, "windlass.dev/inject-ca-from-secret": null,
            "windlass.dev/inject-apiserver-ca": null,
        });
        annotations[annotation] = value.into();
        json!({"metadata": {"annotations": annotations}})
    };
    let from_secret = asks(
        "windlass.dev/inject-ca-from-secret",
        &format!("{}/ca", operator::NAMESPACE),
    );
    succeed(&second.client, "PATCH", &hooks, Some(&from_secret)).await?;
    let wait_for_ca_bundle = async |expected: &str| {
        until(
            "the webhook has the expected CA bundle",
            PATIENCE * 2,
            async || {
                let target = get(&second.client, &hooks).await?.context("gone")?;
                let carried = text(&target, "/webhooks/0/clientConfig/caBundle");
                Ok(check(carried == expected, || carried.to_owned()))
            },
        )
        .await
    };
    wait_for_ca_bundle(text(&source, "/data/ca.crt")).await?;

    // It is unclear which of the two API servers is meant.
    let of_server = asks("windlass.dev/inject-apiserver-ca", "true");
    succeed(&second.client, "PATCH", &hooks, Some(&of_server)).await?;
    wait_for_event(
        client,
        "NoTrustBundle",
        "ValidatingWebhookConfiguration remote in the remote cluster: annotation windlass.dev/inject-apiserver-ca",
    )
    .await?;

    let nothing = asks("windlass.dev/inject-ca-from", "");
    succeed(&second.client, "PATCH", &hooks, Some(&nothing)).await?;
    wait_for_ca_bundle("").await
}
