//! Servers outside of bundles, in StatefulSets and DaemonSets, that read their certificate only once.

use anyhow::Context;
use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass_object::names;

use super::traffic;
use crate::{
    request, sample,
    steps::{PATIENCE, VALIDATING, check, get, rotate, serving_certificates, succeed, until},
    test_cluster::TestCluster,
};

const NAMESPACE: &str = "platform";

/// The API of the workloads.
const APPS: &str = "/apis/apps/v1/namespaces/platform";

/// The collection of the objects that the servers admit.
const ADMITTED: &str = "/api/v1/namespaces/platform/configmaps?dryRun=All";

/// Requests that a server admits, until they are stopped.
struct Requests {
    stop: CancellationToken,
    task: JoinHandle<(u32, Vec<String>)>,
}

/// Each workload is restarted once after the rotation, and no request fails.
pub(super) async fn stateful_sets_and_daemon_sets_that_never_reload_are_restarted(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    traffic::create_namespace(cluster, NAMESPACE).await?;
    let client = &cluster.client;
    let update = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    for (plural, name, extra) in [
        (
            "statefulsets",
            "stateful",
            json!({"replicas": 2, "serviceName": "stateful"}),
        ),
        ("daemonsets", "daemon", json!({"updateStrategy": update})),
    ] {
        start_server(client, plural, name, extra).await?;
        let requests = Requests::start(client.clone(), name);
        rotate(client, NAMESPACE, name, "leaf", PATIENCE * 2).await?;
        let path = format!("{APPS}/{plural}/{name}");
        let workload = get(client, &path).await?.context("no workload")?;
        let annotations = &workload["spec"]["template"]["metadata"]["annotations"];
        anyhow::ensure!(
            annotations[names::RESTARTED_FOR].is_string() && workload["metadata"]["generation"] == 2,
            "expected one restart: {}",
            workload["metadata"]
        );
        requests.finish().await?;
    }
    Ok(())
}

/// Starts a server that requests its certificate by an annotation, and a webhook that sends it ConfigMaps
/// with its label.
async fn start_server(client: &Client, plural: &str, name: &str, extra: Value) -> anyhow::Result<()> {
    let services = format!("/api/v1/namespaces/{NAMESPACE}/services");
    let service = json!({
        "metadata": {"name": name, "annotations": {names::SERVING_CERT_SECRET: format!("{name}-cert")}},
        "spec": {"selector": {"app": name}, "ports": [{"port": 443, "targetPort": 9443}]},
    });
    succeed(client, "POST", &services, Some(&service)).await?;
    let mut workload = json!({
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "minReadySeconds": 2,
            "template": {"metadata": {"labels": {"app": name}}, "spec": server_pod(name)},
        },
    });
    for (field, value) in extra.as_object().into_iter().flatten() {
        workload["spec"][field] = value.clone();
    }
    succeed(client, "POST", &format!("{APPS}/{plural}"), Some(&workload)).await?;
    let certificate = format!("{}/{name}", serving_certificates(NAMESPACE));
    until(
        "every endpoint serves the certificate",
        PATIENCE * 2,
        async || {
            let status = get(client, &certificate).await?.unwrap_or_default()["status"].take();
            let ready = &status["endpoints"]["ready"];
            let serves = ready.as_u64() > Some(0) && *ready == status["endpoints"]["current"];
            Ok(check(serves, || status.to_string()))
        },
    )
    .await?;
    // The webhook is created with its CA: a scenario cannot observe when every API server has read a CA that
    // is added later.
    let secret = format!("/api/v1/namespaces/{NAMESPACE}/secrets/{name}-cert");
    let ca = get(client, &secret).await?.context("no Secret")?["data"]["ca.crt"].take();
    let webhook = json!({
        "metadata": {"name": name, "annotations": {names::INJECT_CA_FROM: format!("{NAMESPACE}/{name}")}},
        "webhooks": [{
            "name": format!("{name}.example.com"), "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "failurePolicy": "Fail", "objectSelector": {"matchLabels": {"admitted-by": name}},
            "clientConfig": {
                "caBundle": ca,
                "service": {"namespace": NAMESPACE, "name": name, "path": "/validate"},
            },
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"],
            }],
        }],
    });
    succeed(client, "POST", VALIDATING, Some(&webhook)).await?;
    until("the webhook is called", PATIENCE, async || {
        let answer = request::send(client, "POST", ADMITTED, Some(&admitted_config_map(name))).await?;
        Ok(check(answer.code < 300, || answer.to_string()))
    })
    .await?;
    Ok(())
}

/// A pod that reads its certificate once, and serves for a while after it is terminated.
fn server_pod(name: &str) -> Value {
    json!({
        // No controller removes the initial taint of a node.
        "tolerations": [{"operator": "Exists"}],
        "volumes": [{"name": "cert", "secret": {"secretName": format!("{name}-cert")}}],
        "containers": [{
            "name": "server",
            "image": format!("{}:v1", sample::IMAGE),
            "args": ["--linger=6s"],
            "env": [
                {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                {"name": "RELOAD", "value": "false"},
            ],
            "ports": [{"containerPort": 9443}],
            "volumeMounts": [{"name": "cert", "mountPath": "/tmp/k8s-webhook-server/serving-certs"}],
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8081}, "periodSeconds": 1},
            "lifecycle": {"preStop": {"sleep": {"seconds": 3}}},
        }],
    })
}

fn admitted_config_map(name: &str) -> Value {
    json!({"metadata": {"generateName": "admitted-", "labels": {"admitted-by": name}}})
}

impl Requests {
    fn start(client: Client, name: &str) -> Self {
        let (stop, body) = (CancellationToken::new(), admitted_config_map(name));
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let (mut sent, mut failed) = (0, Vec::new());
            while !stopped.is_cancelled() {
                sent += 1;
                match request::send(&client, "POST", ADMITTED, Some(&body)).await {
                    Ok(answer) if answer.code < 300 => {}
                    Ok(answer) => failed.push(answer.to_string()),
                    Err(error) => failed.push(format!("{error:#}")),
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            (sent, failed)
        });
        Self { stop, task }
    }

    async fn finish(self) -> anyhow::Result<()> {
        self.stop.cancel();
        let (sent, failed) = self.task.await?;
        anyhow::ensure!(sent > 10, "only {sent} requests were sent");
        anyhow::ensure!(
            failed.is_empty(),
            "{} of {sent} requests failed: {}",
            failed.len(),
            failed[0]
        );
        Ok(())
    }
}
