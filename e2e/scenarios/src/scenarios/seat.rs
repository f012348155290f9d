//! Proof from the API server's seat: what it reaches and what not, and what is left of the question.

use anyhow::Context;
use serde_json::{Value, json};

use super::upgrade::stopped;
use crate::{
    request::text,
    sample,
    steps::{
        BUNDLE_DEPLOYMENTS, MUTATING, PATIENCE, VALIDATING, bundle_deployment, check, delete, get, gone,
        list, ready, succeed, until,
    },
    test_cluster::TestCluster,
};

/// What the API server is asked by.
const PROBES: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?labelSelector=windlass.dev/probe";

/// The webhooks that were installed.
const INSTALLED: &str = "labelSelector=windlass.dev/bundle-deployment";

const PODS: &str =
    "/api/v1/namespaces/sample-system/pods?labelSelector=app.kubernetes.io/name=sample-operator";

const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/sample-system/endpointslices";

/// An address where nobody is (RFC 5737).
const NOWHERE: &str = "192.0.2.1";

/// What pods of the sample wait for in these scenarios.
const AWAITED: &str = "/api/v1/namespaces/sample-system/configmaps";

pub(super) async fn the_api_server_is_asked_once_for_each_server(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let (operator, proxy) = cluster.proxied(&cluster.operator).await?;
    let running = operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    no_probe(cluster).await?;
    let deleted = format!("DELETE {VALIDATING}/windlass-probe-sample-");
    let asked = || {
        proxy
            .log()
            .iter()
            .filter(|write| write.starts_with(&deleted))
            .count()
    };
    anyhow::ensure!(asked() == 1, "asked {} times: {:?}", asked(), proxy.log());
    // Who starts again knows from what is in force.
    running.kill().await?;
    let _running = operator.start()?;
    sample::settled(cluster).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    anyhow::ensure!(asked() == 1, "asked again: {:?}", proxy.log());
    Ok(())
}

pub(super) async fn a_question_that_a_crash_leaves_behind_goes(cluster: &TestCluster) -> anyhow::Result<()> {
    let running = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    running.kill().await?;
    for owner in ["sample", "gone"] {
        let name = format!("windlass-probe-{owner}-0123456789");
        let left = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name, "labels": {"windlass.dev/probe": owner}},
        });
        succeed(&cluster.client, "POST", VALIDATING, Some(&left)).await?;
    }
    let _running = cluster.operator.start()?;
    for owner in ["sample", "gone"] {
        gone(
            &cluster.client,
            &format!("{VALIDATING}/windlass-probe-{owner}-0123456789"),
        )
        .await?;
    }
    let installed = list(&cluster.client, &format!("{VALIDATING}?{INSTALLED}")).await?;
    anyhow::ensure!(
        installed.len() == 1,
        "{} installed configurations",
        installed.len()
    );
    Ok(())
}

/// The API server takes the first port of a Service that has the number, and nobody is behind that one; whoever dials the
/// endpoints of the other one, as the operator does, is answered.
pub(super) async fn what_only_the_operator_reaches_is_not_armed(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    begin(cluster).await?;
    let useless = json!({"name": "useless", "port": 443, "protocol": "UDP", "targetPort": "useless"});
    let ports = json!([{"op": "add", "path": "/spec/ports/0", "value": useless}]);
    patch_service(cluster, &ports).await?;
    let awaited = json!({"metadata": {"name": "awaited"}, "data": {"A": "b"}});
    succeed(&cluster.client, "POST", AWAITED, Some(&awaited)).await?;
    stopped(
        cluster,
        "UnreachableFromAPIServer",
        "but the operator does. The API server says: no endpoints available for service \"sample-operator-service\"",
    )
    .await?;
    nothing_armed(cluster).await?;
    no_probe(cluster).await?;
    let object = get(&cluster.client, sample::BUNDLE_DEPLOYMENT)
        .await?
        .context("no BundleDeployment")?;
    tracing::info!(conditions = crate::steps::conditions(&object), "Stopped");
    let service = get(&cluster.client, sample::SERVICE)
        .await?
        .context("no Service")?;
    let useless = service["spec"]["ports"].as_array().into_iter().flatten();
    let index = useless
        .clone()
        .position(|port| port["name"] == "useless")
        .context("the port is gone")?;
    let ports = json!([{"op": "remove", "path": format!("/spec/ports/{index}")}]);
    patch_service(cluster, &ports).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    no_probe(cluster).await
}

/// The API server calls the first address of an endpoint; the operator wants to see all of them, and nobody is at the other.
pub(super) async fn what_only_the_api_server_reaches_is_not_armed(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let running = cluster.operator.start()?;
    begin(cluster).await?;
    running.kill().await?;
    let awaited = json!({"metadata": {"name": "awaited"}, "data": {"A": "b"}});
    succeed(&cluster.client, "POST", AWAITED, Some(&awaited)).await?;
    let pod = until("a pod is ready", PATIENCE, async || {
        let pods = list(&cluster.client, PODS).await?;
        let ready = pods.into_iter().find(is_ready);
        Ok(ready.ok_or_else(|| "no pod is ready".to_owned()))
    })
    .await?;
    let service = get(&cluster.client, sample::SERVICE)
        .await?
        .context("no Service")?;
    let metadata = &pod["metadata"];
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "half", "labels": {
            "kubernetes.io/service-name": sample::CERTIFICATE,
            "endpointslice.kubernetes.io/managed-by": "windlass-e2e",
        }},
        "ports": [{"name": service["spec"]["ports"][0]["name"], "port": 9443, "protocol": "TCP"}],
        "endpoints": [{
            "addresses": [pod["status"]["podIP"], NOWHERE], "conditions": {"ready": true},
            "targetRef": {
                "kind": "Pod", "namespace": sample::NAMESPACE, "name": metadata["name"], "uid": metadata["uid"],
            },
        }],
    });
    succeed(&cluster.client, "POST", SLICES, Some(&slice)).await?;
    let _running = cluster.operator.start()?;
    stopped(
        cluster,
        "UnreachableFromOperator",
        "The operator found: 192.0.2.1:9443",
    )
    .await?;
    stopped(
        cluster,
        "UnreachableFromOperator",
        "allow it from the namespace windlass-system, too",
    )
    .await?;
    nothing_armed(cluster).await?;
    no_probe(cluster).await?;
    delete(&cluster.client, &format!("{SLICES}/half")).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    no_probe(cluster).await
}

async fn nothing_armed(cluster: &TestCluster) -> anyhow::Result<()> {
    for collection in [VALIDATING, MUTATING] {
        let armed = list(&cluster.client, &format!("{collection}?{INSTALLED}")).await?;
        anyhow::ensure!(armed.is_empty(), "{} of {collection} are armed", armed.len());
    }
    Ok(())
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let mut ready = conditions.filter(|condition| condition["type"] == "Ready");
    ready.any(|condition| condition["status"] == "True")
}

/// Begins to install the sample, whose pods wait for a ConfigMap; waits until its Service is there.
async fn begin(cluster: &TestCluster) -> anyhow::Result<()> {
    let folder = cluster.add_bundle(&sample::bundle("sample.v1"), "sample.v1-waiting")?;
    let image = format!("image: {}:v1", sample::IMAGE);
    let waiting = format!("{image}\n                envFrom: [{{configMapRef: {{name: awaited}}}}]");
    cluster.edit(&folder, &image, &waiting)?;
    let object = bundle_deployment("sample", sample::NAMESPACE, "sample.v1-waiting");
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    until("the Deployment is there", PATIENCE, async || {
        let deployment = get(&cluster.client, sample::DEPLOYMENT).await?;
        Ok(check(deployment.is_some(), || "no Deployment".to_owned()))
    })
    .await
}

async fn patch_service(cluster: &TestCluster, patch: &Value) -> anyhow::Result<()> {
    succeed(&cluster.client, "PATCH", sample::SERVICE, Some(patch)).await?;
    Ok(())
}

/// Waits until the API server is asked nothing any more.
async fn no_probe(cluster: &TestCluster) -> anyhow::Result<()> {
    until("no probe is left", PATIENCE, async || {
        let left = list(&cluster.client, PROBES).await?;
        let names: Vec<_> = left.iter().map(|probe| text(probe, "/metadata/name")).collect();
        Ok(check(names.is_empty(), || names.join(", ")))
    })
    .await
}
