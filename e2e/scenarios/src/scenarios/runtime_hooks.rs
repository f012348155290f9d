//! An extension of a bundle, called through its ExtensionConfig as a Cluster API controller calls it.

use std::sync::Arc;

use anyhow::Context;
use runtime_hooks::{
    Catalog, Registry,
    client::{CallOptions, HookClient},
    cluster_api::{BeforeClusterCreate, BeforeClusterCreateRequest},
    in_cluster::{ClusterNamespaces, follow_extension_configs},
};
use serde_json::Value;
use tokio::task::JoinHandle;
use webhook_transport::client::{Transport, TransportOptions};

use super::{discovery, server_calls::ServerCalls, service_endpoints::ServiceEndpoints};
use crate::{
    cluster_api,
    steps::{self, PATIENCE, check, delete, get, is_settled, list, ready, rotate, succeed, until},
    test_cluster::TestCluster,
};

/// An installed extension, and a client such as a controller has.
struct Extension {
    registry: Arc<Registry>,
    hooks: HookClient,
    endpoints: Arc<ServiceEndpoints>,
    following: JoinHandle<()>,
}

const NAMESPACE: &str = "sample-extension-system";
const SERVICE: &str = "sample-operator-service";
const PODS: &str = "/api/v1/namespaces/sample-extension-system/pods";

const EXTENSION_CONFIG: &str = "/apis/runtime.cluster.x-k8s.io/v1beta2/extensionconfigs/sample-extension";

/// The handler of the sample bundle.
const HANDLER: &str = "sample.sample-extension";

/// Replicas that start slowly, and close connections about when they are reused.
const SLOW_SERVER: &str = "
                args: [--ready-after=3s, --idle-timeout=20ms]
                readinessProbe:
                  httpGet: {path: /readyz, port: 8081}
                  periodSeconds: 1";

pub(super) async fn no_call_of_an_extension_fails_while_its_certificate_rotates(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    cluster.bundle("runtime-extension")?;
    let extension = Extension::install(cluster).await?;
    let request = BeforeClusterCreateRequest::default();
    let hooks = &extension.hooks;
    let all = hooks.call_all::<BeforeClusterCreate>("default", &request, CallOptions::default());
    let response = all.await.context("calling all handlers")?;
    anyhow::ensure!(
        response.message == "hello",
        "the settings are missing: {response:?}"
    );

    let calls = start_calls(hooks);
    calls.at_least(50).await?;
    rotate(client, NAMESPACE, SERVICE, "leaf", PATIENCE).await?;
    rotate(client, NAMESPACE, SERVICE, "ca", PATIENCE).await?;
    rotate(client, NAMESPACE, SERVICE, "ca", PATIENCE).await?;
    discovery::wait_for_discovery(cluster, "sample-extension", None, 1).await?;
    let config = get(client, EXTENSION_CONFIG).await?.context("gone")?;
    cluster_api::registers(cluster, &config, 1).await?;
    calls.at_least(50).await?;
    calls.end().await?;
    extension.remove(cluster).await
}

pub(super) async fn no_call_of_an_extension_fails_while_slow_replicas_die_during_rotations(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    let bundle = cluster.bundle("runtime-extension")?;
    let image = "image: example.com/windlass/sample-operator:v1";
    cluster.edit(&bundle, image, &format!("{image}{SLOW_SERVER}"))?;
    let extension = Extension::install(cluster).await?;

    let calls = start_calls(&extension.hooks);
    calls.at_least(50).await?;
    // The first replica is killed, the second is terminated gracefully.
    for grace in [0, 30] {
        let certificate = format!("{}/{SERVICE}", steps::serving_certificates(NAMESPACE));
        let request = steps::request_rotation(client, NAMESPACE, SERVICE, "ca").await?;
        until("a rotation has started", PATIENCE, async || {
            let object = get(client, &certificate).await?.context("gone")?;
            let status = &object["status"];
            Ok(check(status["phase"] != "Stable", || status.to_string()))
        })
        .await?;
        let pods = list(client, PODS).await?;
        let name = pods.first().and_then(|pod| pod["metadata"]["name"].as_str());
        let name = name.context("no pods")?;
        delete(client, &format!("{PODS}/{name}?gracePeriodSeconds={grace}")).await?;
        until(
            "the rotation is finished and both replicas are ready",
            PATIENCE,
            async || {
                let object = get(client, &certificate).await?.context("gone")?;
                let is_done = object["status"]["rotated"] == request && is_settled(&object);
                let pods = list(client, PODS).await?;
                let ready = pods.iter().filter(|pod| is_ready(pod)).count();
                let has_all = ready == 2 && object["status"]["endpoints"]["ready"] == 2;
                Ok(check(is_done && has_all, || {
                    format!("{ready} pods are ready, {}", object["status"])
                }))
            },
        )
        .await?;
    }
    discovery::wait_for_discovery(cluster, "sample-extension", None, 1).await?;
    calls.at_least(50).await?;
    let (calls, connections) = (calls.end().await?, extension.endpoints.connections());
    tracing::info!(calls, connections, "No call failed");
    anyhow::ensure!(
        connections > 50,
        "only {connections} connections for {calls} calls: no server closed a connection"
    );
    extension.remove(cluster).await
}

/// Calls the handler of the sample bundle repeatedly.
fn start_calls(hooks: &HookClient) -> ServerCalls {
    let hooks = hooks.clone();
    ServerCalls::start(move || {
        let hooks = hooks.clone();
        async move {
            let (request, options) = (BeforeClusterCreateRequest::default(), CallOptions::default());
            let called = hooks.call::<BeforeClusterCreate>(HANDLER, "default", &request, options);
            called.await.map(drop).map_err(|error| error.to_string())
        }
    })
}

/// Reports whether a pod is ready and not terminating.
fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    pod["metadata"]["deletionTimestamp"].is_null()
        && conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

impl Extension {
    /// Installs the sample bundle from the operator's folder, and waits until its handler is registered.
    async fn install(cluster: &TestCluster) -> anyhow::Result<Self> {
        let client = &cluster.client;
        discovery::define(cluster).await?;
        let object = steps::bundle_deployment("extension", NAMESPACE, "runtime-extension");
        succeed(client, "POST", steps::BUNDLE_DEPLOYMENTS, Some(&object)).await?;
        ready(client, "extension", PATIENCE).await?;
        discovery::wait_for_discovery(cluster, "sample-extension", None, 1).await?;

        let registry = Arc::new(Registry::new());
        let following = tokio::spawn(follow_extension_configs(client.clone(), registry.clone()));
        until("the handler is registered", PATIENCE, async || {
            let is_there = registry.get(HANDLER).ok().flatten().is_some();
            Ok(check(is_there, || format!("{:?}", registry.states())))
        })
        .await?;
        let endpoints = Arc::new(ServiceEndpoints::new(client));
        let transport = Transport::new(TransportOptions {
            resolver: endpoints.clone(),
            proxies: false,
            ..TransportOptions::default()
        });
        let hooks = HookClient::new(Arc::new(Catalog::cluster_api()), registry.clone(), transport)
            .with_namespaces(Arc::new(ClusterNamespaces::new(client.clone())));
        Ok(Self {
            registry,
            hooks,
            endpoints,
            following,
        })
    }

    /// Removes the bundle, and waits until its handler is not registered.
    async fn remove(self, cluster: &TestCluster) -> anyhow::Result<()> {
        let path = format!("{}/extension", steps::BUNDLE_DEPLOYMENTS);
        succeed(&cluster.client, "DELETE", &path, None).await?;
        until("no handler is registered", PATIENCE, async || {
            let handlers = self.registry.handlers()?;
            Ok(check(handlers.is_empty(), || {
                format!("{:?}", self.registry.states())
            }))
        })
        .await?;
        self.following.abort();
        Ok(())
    }
}
