//! An interpreter webhook of a bundle, called through its webhook configuration as Karmada calls it.

use std::{fs, sync::Arc};

use anyhow::Context;
use interpreter::{
    Answer, Question, ResourceInterpreter,
    in_cluster::follow_webhook_configurations,
    webhook::{InterpreterClient, Webhooks, webhook_configuration_crd},
};
use serde_json::{Value, json};
use webhook_transport::client::{Transport, TransportOptions};

use super::{foreign, server_calls::ServerCalls, service_endpoints::ServiceEndpoints};
use crate::{
    request::text,
    sample,
    steps::{self, PATIENCE, check, get, ready, rotate, succeed, until},
    test_cluster::TestCluster,
};

const NAMESPACE: &str = "sample-interpreter-system";

/// The name of the Service and of its ServingCertificate.
const SERVICE: &str = "sample-interpreter";

/// The path of the webhook configuration, which is not part of the bundle.
const CONFIGURATION: &str = "interpreter/karmada/resourceinterpreterwebhookconfiguration.yaml";

const CONFIGURATIONS: &str = "/apis/config.karmada.io/v1alpha1/resourceinterpreterwebhookconfigurations";

/// A workload with all replicas ready.
fn workload() -> Value {
    json!({
        "apiVersion": "workload.example.io/v1alpha1", "kind": "Workload",
        "metadata": {"namespace": "default", "name": "w"},
        "spec": {"replicas": 2}, "status": {"readyReplicas": 2},
    })
}

pub(super) async fn an_interpreter_is_called_while_its_certificates_rotate(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    foreign::define(client, &webhook_configuration_crd()).await?;
    cluster.bundle("interpreter")?;
    let object = steps::bundle_deployment("interpreter", NAMESPACE, "interpreter");
    succeed(client, "POST", steps::BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    ready(client, "interpreter", PATIENCE).await?;
    let configuration = fs::read_to_string(sample::bundle(CONFIGURATION))?;
    let configuration: Value = serde_saphyr::from_str(&configuration)?;
    succeed(client, "POST", CONFIGURATIONS, Some(&configuration)).await?;
    let first = wait_for_other_bundle(cluster, "").await?;

    let endpoints = Arc::new(ServiceEndpoints::new(client));
    let transport = Transport::new(TransportOptions {
        resolver: endpoints.clone(),
        proxies: false,
        ..InterpreterClient::transport_options()
    });
    let webhooks = Arc::new(Webhooks::new(Arc::new(InterpreterClient::new(transport))));
    let interpreter = ResourceInterpreter::new(vec![webhooks.clone()]);
    let following = tokio::spawn(follow_webhook_configurations(client.clone(), webhooks));
    until("the interpreter responds", PATIENCE, async || {
        Ok(check_health(&interpreter).await)
    })
    .await?;

    let calls = ServerCalls::start(move || {
        let interpreter = interpreter.clone();
        async move { check_health(&interpreter).await }
    });
    calls.at_least(50).await?;
    rotate(client, NAMESPACE, SERVICE, "leaf", PATIENCE).await?;
    calls.at_least(50).await?;
    for _ in 0..2 {
        rotate(client, NAMESPACE, SERVICE, "ca", PATIENCE).await?;
        calls.at_least(50).await?;
    }
    wait_for_other_bundle(cluster, &first).await?;
    let (made, connections) = (calls.end().await?, endpoints.connections());
    tracing::info!(calls = made, connections, "No call failed");
    following.abort();
    Ok(())
}

/// Requests the health of the workload, and expects that it is healthy.
async fn check_health(interpreter: &ResourceInterpreter) -> Result<(), String> {
    let workload = workload();
    let asked = interpreter.ask(Question::Health { object: &workload }).await;
    match asked {
        Ok(Some(Answer::Health(true))) => Ok(()),
        Ok(other) => Err(format!("{other:?}")),
        Err(error) => Err(format!("{error}: {}", error.source)),
    }
}

/// Waits for a trust bundle in the configuration that differs from `before`, and returns it.
async fn wait_for_other_bundle(cluster: &TestCluster, before: &str) -> anyhow::Result<String> {
    let path = format!("{CONFIGURATIONS}/sample-interpreter");
    until("the configuration has a new trust bundle", PATIENCE, async || {
        let configuration = get(&cluster.client, &path).await?.context("it does not exist")?;
        let bundle = text(&configuration, "/webhooks/0/clientConfig/caBundle").to_owned();
        let is_there = bundle != before;
        Ok(check(is_there, || configuration.to_string()).map(|()| bundle))
    })
    .await
}
