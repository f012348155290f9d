//! An extension of a bundle, called as a controller calls it: by whom its ExtensionConfig registers.

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use futures::{FutureExt, future::BoxFuture};
use kube::Client;
use parking_lot::Mutex;
use runtime_hooks::{
    Catalog, Registry,
    client::{CallOptions, HookClient},
    cluster_api::{BeforeClusterCreate, BeforeClusterCreateRequest},
    in_cluster::{ClusterNamespaces, follow_extension_configs},
};
use serde_json::Value;
use tokio::{task::JoinHandle, time::Instant};
use webhook_transport::client::{Resolve, Transport, TransportOptions};

use super::discovery;
use crate::{
    cluster_api,
    steps::{self, PATIENCE, check, get, ready, rotate, succeed, until},
    test_cluster::TestCluster,
};

const NAMESPACE: &str = "sample-extension-system";
const SERVICE: &str = "sample-operator-service";

const EXTENSION_CONFIG: &str = "/apis/runtime.cluster.x-k8s.io/v1beta2/extensionconfigs/sample-extension";

/// The handler of the sample bundle.
const HANDLER: &str = "sample.sample-extension";

/// How often it is called.
const PERIOD: Duration = Duration::from_millis(20);

/// Calls that go on until they are ended.
struct Calls {
    made: Arc<AtomicU64>,
    failures: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

/// The ready endpoints of a Service, by turns: what kube-proxy does.
struct Endpoints {
    client: Client,
    turn: AtomicUsize,
}

pub(super) async fn an_extension_is_called_while_it_rotates(cluster: &TestCluster) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    discovery::define(cluster).await?;
    cluster.bundle("runtime-extension")?;
    let object = steps::bundle_deployment("extension", NAMESPACE, "runtime-extension");
    succeed(client, "POST", steps::BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    ready(client, "extension", PATIENCE).await?;
    discovery::discovered(cluster, "sample-extension", None, 1).await?;

    let registry = Arc::new(Registry::new());
    let following = tokio::spawn(follow_extension_configs(client.clone(), registry.clone()));
    until("the handler is registered", PATIENCE, async || {
        let is_there = registry.get(HANDLER).ok().flatten().is_some();
        Ok(check(is_there, || format!("{:?}", registry.states())))
    })
    .await?;
    let hooks = hook_client(client, registry.clone());
    let request = BeforeClusterCreateRequest::default();
    let all = hooks.call_all::<BeforeClusterCreate>("default", &request, CallOptions::default());
    let said = all.await.context("calling all handlers")?;
    anyhow::ensure!(said.message == "hello", "its settings are not there: {said:?}");

    let calls = Calls::start(hooks);
    calls.at_least(50).await?;
    rotate(client, NAMESPACE, SERVICE, "leaf", PATIENCE).await?;
    rotate(client, NAMESPACE, SERVICE, "ca", PATIENCE).await?;
    rotate(client, NAMESPACE, SERVICE, "ca", PATIENCE).await?;
    discovery::discovered(cluster, "sample-extension", None, 1).await?;
    let config = get(client, EXTENSION_CONFIG).await?.context("gone")?;
    cluster_api::registers(cluster, &config, 1).await?;
    calls.at_least(50).await?;
    calls.end().await?;

    succeed(
        client,
        "DELETE",
        &format!("{}/extension", steps::BUNDLE_DEPLOYMENTS),
        None,
    )
    .await?;
    until("the handler is registered no more", PATIENCE, async || {
        let handlers = registry.handlers()?;
        Ok(check(handlers.is_empty(), || format!("{:?}", registry.states())))
    })
    .await?;
    following.abort();
    Ok(())
}

/// A client as a controller has it, but that a test runs outside of the cluster's network, where no name leads to a Service.
fn hook_client(client: &Client, registry: Arc<Registry>) -> HookClient {
    let endpoints = Endpoints {
        client: client.clone(),
        turn: AtomicUsize::new(0),
    };
    let transport = Transport::new(TransportOptions {
        resolver: Arc::new(endpoints),
        proxies: false,
        ..TransportOptions::default()
    });
    HookClient::new(Arc::new(Catalog::of_cluster_api()), registry, transport)
        .with_namespaces(Arc::new(ClusterNamespaces::new(client.clone())))
}

// === impl Calls ===

impl Calls {
    fn start(hooks: HookClient) -> Self {
        let (made, failures) = (Arc::<AtomicU64>::default(), Arc::<Mutex<Vec<String>>>::default());
        let task = tokio::spawn(call(hooks, made.clone(), failures.clone()));
        Self { made, failures, task }
    }

    /// Waits for so many more.
    async fn at_least(&self, more: u64) -> anyhow::Result<()> {
        let wanted = self.made.load(Ordering::Relaxed) + more;
        until("the handler is called", PATIENCE, async || {
            let made = self.made.load(Ordering::Relaxed);
            Ok(check(made >= wanted, || format!("{made} of {wanted} calls")))
        })
        .await
    }

    async fn end(self) -> anyhow::Result<()> {
        self.task.abort();
        let failures = std::mem::take(&mut *self.failures.lock());
        anyhow::ensure!(
            failures.is_empty(),
            "{} of {} calls failed: {}",
            failures.len(),
            self.made.load(Ordering::Relaxed),
            failures.join("; ")
        );
        Ok(())
    }
}

async fn call(hooks: HookClient, made: Arc<AtomicU64>, failures: Arc<Mutex<Vec<String>>>) {
    let request = BeforeClusterCreateRequest::default();
    let options = CallOptions::default();
    let mut next = Instant::now();
    loop {
        tokio::time::sleep_until(next).await;
        next += PERIOD;
        let called = hooks.call::<BeforeClusterCreate>(HANDLER, "default", &request, options);
        if let Err(error) = called.await {
            failures.lock().push(error.to_string());
        }
        made.fetch_add(1, Ordering::Relaxed);
    }
}

// === impl Endpoints ===

impl Resolve for Endpoints {
    fn resolve(&self, host: String, port: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        let client = self.client.clone();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        async move {
            let found = endpoints(&client, &host, port).await;
            let mut found = found.map_err(io::Error::other)?;
            if !found.is_empty() {
                let first = turn % found.len();
                found.rotate_left(first);
            }
            Ok(found)
        }
        .boxed()
    }
}

/// The ready endpoints of the Service that has this name.
async fn endpoints(client: &Client, host: &str, port: u16) -> anyhow::Result<Vec<SocketAddr>> {
    let mut labels = host.split('.');
    let (name, namespace) = labels.next().zip(labels.next()).context("it is not a Service")?;
    let service = get(client, &format!("/api/v1/namespaces/{namespace}/services/{name}"))
        .await?
        .context("there is no Service")?;
    let ports = service["spec"]["ports"].as_array().context("no ports")?;
    let called = ports
        .iter()
        .find(|known| known["port"] == port)
        .context("no such port")?;
    let slices = format!(
        "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D{name}"
    );
    let slices = get(client, &slices).await?.context("no list")?;
    let mut addresses = BTreeMap::new();
    for slice in slices["items"].as_array().into_iter().flatten() {
        let ports = slice["ports"].as_array().into_iter().flatten();
        let target = ports
            .clone()
            .find(|known| known["name"] == called["name"])
            .or_else(|| ports.clone().next());
        let target = target.and_then(|port| port["port"].as_u64()).context("no port")?;
        for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
            let is_ready = endpoint["conditions"]["ready"] != Value::Bool(false);
            for address in endpoint["addresses"].as_array().into_iter().flatten() {
                let address: IpAddr = address.as_str().unwrap_or_default().parse()?;
                if is_ready {
                    addresses.insert(SocketAddr::new(address, u16::try_from(target)?), ());
                }
            }
        }
    }
    Ok(addresses.into_keys().collect())
}
