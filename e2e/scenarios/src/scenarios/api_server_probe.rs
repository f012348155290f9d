//! Probes that the API server sends: which servers it reaches, and what happens to the objects of the probes.

use anyhow::Context;
use serde_json::{Value, json};

use super::upgrade::wait_until_stopped;
use crate::{
    request::text,
    sample,
    steps::{
        BUNDLE_DEPLOYMENTS, MUTATING, PATIENCE, VALIDATING, bundle_deployment, check, delete, get, gone,
        list, ready, succeed, until,
    },
    test_cluster::TestCluster,
};

/// The webhook configurations of probes.
const PROBES: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?labelSelector=windlass.dev/probe";

/// The label selector of installed webhook configurations.
const INSTALLED: &str = "labelSelector=windlass.dev/bundle-deployment";

const PODS: &str =
    "/api/v1/namespaces/sample-system/pods?labelSelector=app.kubernetes.io/name=sample-operator";

const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/sample-system/endpointslices";

/// An address without a host (RFC 5737).
const NOWHERE: &str = "192.0.2.1";

/// The collection of the ConfigMap that the pods of the sample need to start.
const CONFIG_MAPS: &str = "/api/v1/namespaces/sample-system/configmaps";

pub(super) async fn the_api_server_probes_each_server_once(cluster: &TestCluster) -> anyhow::Result<()> {
    let (operator, proxy) = cluster.proxied(&cluster.operator).await?;
    let running = operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    wait_for_no_probe(cluster).await?;
    let deleted = format!("DELETE {VALIDATING}/windlass-probe-sample-");
    let probes_sent = || {
        proxy
            .log()
            .iter()
            .filter(|write| write.starts_with(&deleted))
            .count()
    };
    anyhow::ensure!(
        probes_sent() == 1,
        "{} probes were sent: {:?}",
        probes_sent(),
        proxy.log()
    );
    // A restarted operator finds the armed webhooks and sends no probe.
    running.kill().await?;
    let _running = operator.start()?;
    sample::settled(cluster).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    anyhow::ensure!(probes_sent() == 1, "another probe was sent: {:?}", proxy.log());
    Ok(())
}

pub(super) async fn a_probe_left_by_a_crash_is_deleted(cluster: &TestCluster) -> anyhow::Result<()> {
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
        "{} webhook configurations are installed",
        installed.len()
    );
    Ok(())
}

/// The API server uses the first port of a Service with the number, which has no endpoints. The operator
/// connects to the endpoints of the other port, which answer.
pub(super) async fn a_server_that_only_the_operator_reaches_is_not_armed(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    start_install(cluster).await?;
    let useless = json!({"name": "useless", "port": 443, "protocol": "UDP", "targetPort": "useless"});
    let ports = json!([{"op": "add", "path": "/spec/ports/0", "value": useless}]);
    patch_service(cluster, &ports).await?;
    let awaited = json!({"metadata": {"name": "awaited"}, "data": {"A": "b"}});
    succeed(&cluster.client, "POST", CONFIG_MAPS, Some(&awaited)).await?;
    wait_until_stopped(
        cluster,
        "UnreachableFromAPIServer",
        "but the operator does. The API server says: no endpoints available for service \"sample-operator-service\"",
    )
    .await?;
    check_nothing_armed(cluster).await?;
    wait_for_no_probe(cluster).await?;
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
        .context("the port was removed")?;
    let ports = json!([{"op": "remove", "path": format!("/spec/ports/{index}")}]);
    patch_service(cluster, &ports).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    wait_for_no_probe(cluster).await
}

/// The API server calls the first address of an endpoint. The operator checks all addresses, and the second
/// has no host.
pub(super) async fn a_server_that_only_the_api_server_reaches_is_not_armed(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let running = cluster.operator.start()?;
    start_install(cluster).await?;
    running.kill().await?;
    let awaited = json!({"metadata": {"name": "awaited"}, "data": {"A": "b"}});
    succeed(&cluster.client, "POST", CONFIG_MAPS, Some(&awaited)).await?;
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
    wait_until_stopped(
        cluster,
        "UnreachableFromOperator",
        "The operator found: 192.0.2.1:9443",
    )
    .await?;
    wait_until_stopped(
        cluster,
        "UnreachableFromOperator",
        "allow it from the namespace windlass-system, too",
    )
    .await?;
    check_nothing_armed(cluster).await?;
    wait_for_no_probe(cluster).await?;
    delete(&cluster.client, &format!("{SLICES}/half")).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    wait_for_no_probe(cluster).await
}

async fn check_nothing_armed(cluster: &TestCluster) -> anyhow::Result<()> {
    for collection in [VALIDATING, MUTATING] {
        let armed = list(&cluster.client, &format!("{collection}?{INSTALLED}")).await?;
        anyhow::ensure!(
            armed.is_empty(),
            "{} objects of {collection} are armed",
            armed.len()
        );
    }
    Ok(())
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let mut ready = conditions.filter(|condition| condition["type"] == "Ready");
    ready.any(|condition| condition["status"] == "True")
}

/// Starts to install the sample, whose pods wait for a ConfigMap, and waits until its Deployment exists.
async fn start_install(cluster: &TestCluster) -> anyhow::Result<()> {
    let folder = cluster.add_bundle(&sample::bundle("sample.v1"), "sample.v1-waiting")?;
    let image = format!("image: {}:v1", sample::IMAGE);
    let waiting = format!("{image}\n                envFrom: [{{configMapRef: {{name: awaited}}}}]");
    cluster.edit(&folder, &image, &waiting)?;
    let object = bundle_deployment("sample", sample::NAMESPACE, "sample.v1-waiting");
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    until("the Deployment exists", PATIENCE, async || {
        let deployment = get(&cluster.client, sample::DEPLOYMENT).await?;
        Ok(check(deployment.is_some(), || "no Deployment".to_owned()))
    })
    .await
}

async fn patch_service(cluster: &TestCluster, patch: &Value) -> anyhow::Result<()> {
    succeed(&cluster.client, "PATCH", sample::SERVICE, Some(patch)).await?;
    Ok(())
}

/// Waits until all probes are deleted.
async fn wait_for_no_probe(cluster: &TestCluster) -> anyhow::Result<()> {
    until("no probe object remains", PATIENCE, async || {
        let left = list(&cluster.client, PROBES).await?;
        let names: Vec<_> = left.iter().map(|probe| text(probe, "/metadata/name")).collect();
        Ok(check(names.is_empty(), || names.join(", ")))
    })
    .await
}
