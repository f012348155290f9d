//! The listening ports. Each accepts TLS and plain HTTP, and is drained on shutdown.

use std::{net::IpAddr, sync::Arc, time::Duration};

use hyper::{Request, body::Incoming};
use tokio::net::TcpListener;
use tower::service_fn;
use webhook_transport::{
    LiveCertificate,
    server::{Encryption, HttpVersions, ServerOptions, ServerTls, WebhookServer},
};

use crate::{args::Args, service::Service};

/// A server on any number of ports, without connection limits.
#[derive(Debug)]
pub(crate) struct SampleServer {
    server: WebhookServer,
    service: Arc<Service>,
    encryption: Encryption,
}

/// The timeout of TLS handshakes.
const PATIENCE: Duration = Duration::from_secs(10);

impl SampleServer {
    /// Creates a server without ports. The arguments set how long connections stay open.
    pub(crate) fn new(
        service: Service,
        certificate: Option<LiveCertificate>,
        args: &Args,
    ) -> anyhow::Result<Self> {
        let tls = certificate.map(|certificate| ServerTls::new(certificate, HttpVersions::Http1));
        let options = ServerOptions {
            handshake_timeout: PATIENCE,
            header_timeout: None,
            idle_timeout: args.idle_timeout,
            connections: usize::MAX,
            linger: args.linger,
            drain_timeout: None,
        };
        Ok(Self {
            server: WebhookServer::new(options),
            service: Arc::new(service),
            encryption: Encryption::TlsOrPlain(tls.transpose()?),
        })
    }

    pub(crate) async fn listen(&self, address: IpAddr, port: u16) -> anyhow::Result<()> {
        let listener = TcpListener::bind((address, port)).await?;
        let service = self.service.clone();
        let answer = service_fn(move |request: Request<Incoming>| {
            let service = service.clone();
            async move { service.answer(request).await }
        });
        self.server.listen(listener, self.encryption.clone(), answer);
        Ok(())
    }

    /// Finishes requests in flight, and closes all connections.
    pub(crate) async fn drain(&self) {
        self.server.drain().await;
    }
}
