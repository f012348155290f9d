//! The cluster address of a Service, with what kube-proxy does behind it: an operator that is a process of this machine calls it there.

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

/// An address that leads to the endpoints of one Service, by turns.
pub(super) struct ServiceAddress {
    address: SocketAddr,
    route: Arc<Mutex<Route>>,
    server: JoinHandle<()>,
}

/// How connections fare now; those that there are end with it.
#[derive(Clone)]
struct Route {
    reach: Reachability,
    end: CancellationToken,
}

/// How a Service is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reachability {
    /// As soon as it is called.
    Open,
    /// Each connection after this time.
    Slow(Duration),
    /// Not at all.
    Closed,
}

/// What may be the cluster address of a Service: one of a real API server, whose network is local to this machine, or else one that is
/// local anyway.
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 96, 77, 1), Ipv4Addr::new(127, 96, 77, 1)];

// === impl ServiceAddress ===

impl ServiceAddress {
    /// An address for the Service `name` of a namespace.
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

    /// What the Service must have as its `clusterIP`, and the port at which it is called.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections fare so from now on.
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
            let led = route
                .end
                .run_until_cancelled(lead(caller, route.reach, &client, &host, port, turn));
            if let Some(Err(error)) = led.await {
                tracing::debug!(%error, "A connection to a Service failed");
            }
        });
    }
}

async fn lead(
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
