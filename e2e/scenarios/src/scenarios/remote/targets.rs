//! What is done for targets of a second cluster.

use anyhow::Context;
use serde_json::json;

use super::{
    super::{
        foreign,
        injection::{self, create_certificate},
    },
    second_cluster::{Second, is_told, secret, secrets, told_operator},
};
use crate::{
    operator,
    request::text,
    steps::{PATIENCE, VALIDATING, check, get, request_rotation, serving_certificates, succeed, until},
    test_cluster::TestCluster,
};

pub(in crate::scenarios) async fn targets_of_a_second_cluster_are_cared_for_as_those_of_the_first(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let second = Second::start().await?;
    succeed(client, "POST", &secrets(), Some(&secret(&second.kubeconfig()))).await?;
    let operator = told_operator(cluster);
    let leader = operator.replica("one").start()?;
    create_certificate(cluster).await?;
    second.create_targets(injection::NAMESPACE, "hook").await?;
    let serving = format!("/api/v1/namespaces/{}/secrets/hook-cert", injection::NAMESPACE);
    let first = second.carries(client, &serving).await?;
    let path = format!("{}/hook", serving_certificates(injection::NAMESPACE));
    until("they are counted", PATIENCE, async || {
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
        second.carries(client, &serving).await?;
    }
    request_rotation(client, injection::NAMESPACE, "hook", "ca:compromised").await?;
    second.carries_other(client, &serving, &first).await?;

    let standby = operator.replica("other").start()?;
    standby.ready().await?;
    leader.crash().await?;
    let drift = json!([{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]);
    succeed(&second.client, "PATCH", &hooks, Some(&drift)).await?;
    second.carries(client, &serving).await?;
    anyhow::ensure!(!standby.leads().await?, "the other replica leads already");

    // Sources are in the first cluster.
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
    let carries = async |expected: &str| {
        until("the webhook carries it", PATIENCE * 2, async || {
            let target = get(&second.client, &hooks).await?.context("gone")?;
            let carried = text(&target, "/webhooks/0/clientConfig/caBundle");
            Ok(check(carried == expected, || carried.to_owned()))
        })
        .await
    };
    carries(text(&source, "/data/ca.crt")).await?;

    // Which API server is meant would not be clear.
    let of_server = asks("windlass.dev/inject-apiserver-ca", "true");
    succeed(&second.client, "PATCH", &hooks, Some(&of_server)).await?;
    is_told(
        client,
        "NoTrustBundle",
        "ValidatingWebhookConfiguration remote in the remote cluster: annotation windlass.dev/inject-apiserver-ca",
    )
    .await?;

    let nothing = asks("windlass.dev/inject-ca-from", "");
    succeed(&second.client, "PATCH", &hooks, Some(&nothing)).await?;
    carries("").await
}
