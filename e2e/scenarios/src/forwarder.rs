//! A load balancer in front of the API server that simulates a power loss: open connections stay open and
//! silent, and new connections reach another API server.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Context;
use kube::config::Kubeconfig;
use parking_lot::Mutex;
use tokio::{
    io::{copy, copy_bidirectional, sink},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use crate::cluster;

/// A running forwarder.
#[derive(Debug)]
pub struct Forwarder {
    kubeconfig: String,
    power: Arc<Mutex<CancellationToken>>,
    server: JoinHandle<()>,
}

impl Forwarder {
    /// Opens a forwarder to the API server of `kubeconfig`.
    ///
    /// # Errors
    ///
    /// Fails if the kubeconfig names no API server, or no port is free.
    pub async fn open(kubeconfig: &str) -> anyhow::Result<Self> {
        let server = cluster::config(kubeconfig).await?.cluster_url;
        let host = server.host().context("the kubeconfig names no API server")?;
        let upstream = (host.to_owned(), server.port_u16().unwrap_or(443));
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context("listening for the forwarder")?;
        let kubeconfig = leading_to(listener.local_addr()?, host, kubeconfig)?;
        let power = Arc::new(Mutex::new(CancellationToken::new()));
        let server = tokio::spawn(accept(listener, upstream, power.clone()));
        Ok(Self {
            kubeconfig,
            power,
            server,
        })
    }

    /// The kubeconfig that uses the forwarder.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// Simulates a power loss of the API server behind all open connections.
    pub fn lose_power(&self) {
        std::mem::take(&mut *self.power.lock()).cancel();
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn accept(listener: TcpListener, upstream: (String, u16), power: Arc<Mutex<CancellationToken>>) {
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                let power = power.lock().clone();
                tokio::spawn(forward(client, upstream.clone(), power));
            }
            Err(error) => tracing::error!(%error, "The forwarder cannot accept a connection"),
        }
    }
}

async fn forward(mut client: TcpStream, upstream: (String, u16), power: CancellationToken) {
    let forwarded = async {
        let mut server = TcpStream::connect(upstream).await?;
        copy_bidirectional(&mut client, &mut server).await
    };
    if power.run_until_cancelled(forwarded).await.is_none() {
        // Wait until the client gives up.
        let _ = copy(&mut client, &mut sink()).await;
    }
}

/// Replaces the API server in `kubeconfig` by `address`; the certificate still names `host`.
fn leading_to(address: SocketAddr, host: &str, kubeconfig: &str) -> anyhow::Result<String> {
    let mut kubeconfig = Kubeconfig::from_yaml(kubeconfig)?;
    for named in &mut kubeconfig.clusters {
        let cluster = named
            .cluster
            .as_mut()
            .context("a cluster without an API server")?;
        let scheme = cluster
            .server
            .as_deref()
            .and_then(|server| server.split_once("://"));
        let (scheme, _) = scheme.context("an API server without a scheme")?;
        cluster.server = Some(format!("{scheme}://{address}"));
        cluster.tls_server_name.get_or_insert_with(|| host.to_owned());
    }
    Ok(serde_json::to_string(&kubeconfig)?)
}
