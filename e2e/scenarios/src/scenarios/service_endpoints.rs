//! A local replacement for kube-proxy: tests run outside of the cluster's network, where names of Services do
//! not resolve.

use std::{
    collections::{BTreeSet, HashMap},
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use futures::{FutureExt, future::BoxFuture};
use kube::Client;
use serde_json::Value;
use tokio::{sync::Mutex, time::Instant};
use webhook_transport::client::Resolve;

use crate::steps::get;

/// Resolves names of Services to one ready endpoint per connection, in turn, with the delay of a node.
pub(super) struct ServiceEndpoints {
    client: Client,
    seen: Arc<Mutex<HashMap<(String, u16), Seen>>>,
    turn: AtomicUsize,
}

/// The endpoints of a Service, and when they were read.
struct Seen {
    at: Instant,
    addresses: Vec<SocketAddr>,
}

/// How late a node observes a change of endpoints.
const DELAY: Duration = Duration::from_millis(300);

impl ServiceEndpoints {
    pub(super) fn new(client: &Client) -> Self {
        Self {
            client: client.clone(),
            seen: Arc::default(),
            turn: AtomicUsize::new(0),
        }
    }

    /// Returns the number of connections.
    pub(super) fn connections(&self) -> usize {
        self.turn.load(Ordering::Relaxed)
    }
}

impl Resolve for ServiceEndpoints {
    fn resolve(&self, host: String, port: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        let (client, seen) = (self.client.clone(), self.seen.clone());
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        async move {
            let service = (host, port);
            let mut seen = seen.lock().await;
            let known = seen.get(&service).filter(|known| known.at.elapsed() < DELAY);
            let addresses = match known {
                Some(known) => known.addresses.clone(),
                None => {
                    let addresses = endpoints(&client, &service.0, port).await;
                    let addresses = addresses.map_err(io::Error::other)?;
                    let (at, known) = (Instant::now(), addresses.clone());
                    seen.insert(service, Seen { at, addresses: known });
                    addresses
                }
            };
            let chosen = turn.checked_rem(addresses.len()).map(|chosen| addresses[chosen]);
            Ok(chosen.into_iter().collect())
        }
        .boxed()
    }
}

/// Reads the ready endpoints of the Service with this host name.
pub(super) async fn endpoints(client: &Client, host: &str, port: u16) -> anyhow::Result<Vec<SocketAddr>> {
    let mut labels = host.split('.');
    let (name, namespace) = labels
        .next()
        .zip(labels.next())
        .context("the host is not a Service")?;
    let service = get(client, &format!("/api/v1/namespaces/{namespace}/services/{name}"))
        .await?
        .context("the Service does not exist")?;
    let ports = service["spec"]["ports"].as_array().context("no ports")?;
    let called = ports
        .iter()
        .find(|known| known["port"] == port)
        .context("the Service lacks the port")?;
    let slices = format!(
        "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D{name}"
    );
    let slices = get(client, &slices).await?.context("no list")?;
    let mut addresses = BTreeSet::new();
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
                    addresses.insert(SocketAddr::new(address, u16::try_from(target)?));
                }
            }
        }
    }
    Ok(addresses.into_iter().collect())
}
