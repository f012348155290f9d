//! A local replacement for the cluster IP of a Service and kube-proxy, for an operator that is a local
//! process.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use kube::Client;
use parking_lot::Mutex;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use super::service_endpoints::endpoints;

/// An address that forwards connections to the endpoints of one Service in turn.
pub(super) struct ServiceAddress {
    address: SocketAddr,
    route: Arc<Mutex<Route>>,
    server: JoinHandle<()>,
}

/// How connections are forwarded; existing ones are closed when it changes.
#[derive(Clone)]
struct Route {
    reach: Reachability,
    end: CancellationToken,
}

/// How a Service is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reachability {
    /// Connections are forwarded immediately.
    Open,
    /// Each connection is forwarded after this delay.
    Slow(Duration),
    /// Connections are closed.
    Closed,
}

/// Possible cluster IPs of the Service: in the range of a real API server whose network is local, or else a
/// loopback address.
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 96, 77, 1), Ipv4Addr::new(127, 96, 77, 1)];

impl ServiceAddress {
    /// Opens an address for the Service `name` of a namespace.
    pub(super) async fn open(client: &Client, namespace: &str, name: &str) -> anyhow::Result<Self> {
        let listener = match TcpListener::bind((ADDRESSES[0], 0)).await {
            Ok(listener) => listener,
            Err(_) => TcpListener::bind((ADDRESSES[1], 0)).await?,
        };
        let address = listener.local_addr()?;
        let route = Arc::new(Mutex::new(Route {
            reach: Reachability::Open,
            end: CancellationToken::new(),
        }));
        let host = format!("{name}.{namespace}.svc");
        let server = tokio::spawn(accept(listener, client.clone(), host, route.clone()));
        Ok(Self {
            address,
            route,
            server,
        })
    }

    /// Returns the `clusterIP` and the port of the Service.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes how connections are forwarded.
    pub(super) fn set(&self, reach: Reachability) {
        let route = Route {
            reach,
            end: CancellationToken::new(),
        };
        std::mem::replace(&mut *self.route.lock(), route).end.cancel();
    }
}

impl Drop for ServiceAddress {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn accept(listener: TcpListener, client: Client, host: String, route: Arc<Mutex<Route>>) {
    let port = listener.local_addr().map_or(0, |address| address.port());
    for turn in 0usize.. {
        let caller = match listener.accept().await {
            Ok((caller, _)) => caller,
            Err(error) => {
                tracing::error!(%error, "The address of a Service cannot accept a connection");
                continue;
            }
        };
        let (route, client, host) = (route.lock().clone(), client.clone(), host.clone());
        tokio::spawn(async move {
            let forwarded =
                route
                    .end
                    .run_until_cancelled(forward(caller, route.reach, &client, &host, port, turn));
            if let Some(Err(error)) = forwarded.await {
                tracing::debug!(%error, "A connection to a Service failed");
            }
        });
    }
}

async fn forward(
    mut caller: TcpStream,
    reach: Reachability,
    client: &Client,
    host: &str,
    port: u16,
    turn: usize,
) -> anyhow::Result<()> {
    match reach {
        Reachability::Open => {}
        Reachability::Slow(delay) => tokio::time::sleep(delay).await,
        Reachability::Closed => return Ok(()),
    }
    let known = endpoints(client, host, port).await?;
    let chosen = turn.checked_rem(known.len()).map(|chosen| known[chosen]);
    if let Some(chosen) = chosen {
        let mut server = TcpStream::connect(chosen).await?;
        copy_bidirectional(&mut caller, &mut server).await?;
    }
    Ok(())
}
