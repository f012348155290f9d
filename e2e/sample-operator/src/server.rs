//! The ports: each speaks TLS or plain HTTP, as a connection begins, and is drained at the end.

use std::{net::IpAddr, sync::Arc, time::Duration};

use hyper::{Request, body::Incoming};
use tokio::net::TcpListener;
use tower::service_fn;
use webhook_transport::{
    LiveCertificate,
    server::{Encryption, HttpVersions, ServerOptions, ServerTls, WebhookServer},
};

use crate::{args::Args, service::Service};

/// A server on any number of ports, without limits: what is tried on it is up to its clients.
#[derive(Debug)]
pub(crate) struct SampleServer {
    server: WebhookServer,
    service: Arc<Service>,
    encryption: Encryption,
}

/// How long a client may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(10);

// === impl SampleServer ===

impl SampleServer {
    /// A server that does not listen yet, whose connections stay as long as the command line wants it.
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

    /// Opens one port.
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

    /// Answers what is under way, and closes each connection with that, or without a request.
    pub(crate) async fn drain(&self) {
        self.server.drain().await;
    }
}
