//! A TLS server that serves the certificate in a Secret, with a delay.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use kube::Client;
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use serde_json::Value;
use tokio::{net::TcpListener, sync::watch};
use tokio_rustls::TlsAcceptor;

use crate::operated_sandbox::{decode, send};

/// The delay after a change.
const LATE: Duration = Duration::from_millis(300);

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
}

#[derive(Debug)]
struct Current(watch::Receiver<Option<Arc<CertifiedKey>>>);

impl Server {
    /// Follows the Secret at `path` until the test ends.
    pub(crate) async fn start(client: Client, path: String) -> Self {
        let (sender, receiver) = watch::channel(None);
        tokio::spawn(async move {
            loop {
                let (code, secret) = send(&client, "GET", &path, "application/json", None).await;
                tokio::time::sleep(LATE).await;
                if code == 200 {
                    sender.send_replace(Some(Arc::new(read(&secret))));
                }
            }
        });
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Current(receiver)));
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let (connection, _) = listener.accept().await.unwrap();
                // Clients disconnect as soon as they have received the certificate.
                tokio::spawn(acceptor.accept(connection));
            }
        });
        Self { address }
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.borrow().clone()
    }
}

fn read(secret: &Value) -> CertifiedKey {
    let data = |key: &str| decode(secret["data"][key].as_str().unwrap());
    let chain = CertificateDer::pem_slice_iter(&data("tls.crt"))
        .collect::<Result<Vec<_>, _>>()
        .unwrap();
    let key = PrivateKeyDer::from_pem_slice(&data("tls.key")).unwrap();
    CertifiedKey::from_der(chain, key, &ring::default_provider()).unwrap()
}
