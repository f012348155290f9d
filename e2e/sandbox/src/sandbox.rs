//! Starts an API server with its controllers, and issues kubeconfigs for it.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    authority::Authority,
    controllers,
    server::{ApiServer, AuditEvent, Faults, front},
    storage::Store,
};

/// Options of a [`Sandbox`].
#[derive(Clone, Debug)]
pub struct SandboxOptions {
    /// The port on loopback; 0 selects a free one.
    pub port: u16,
    /// How long lists of converted versions return 429 after a change of a CRD's `spec`, as on the real
    /// server.
    pub reinitializing: Duration,
}

/// A running API server with its controllers. Dropping it stops both.
pub struct Sandbox {
    server: ApiServer,
    authority: Authority,
    address: SocketAddr,
    tls: Arc<ServerConfig>,
    /// Closes all connections when dropped.
    front: Mutex<Option<DropGuard>>,
    _stop: DropGuard,
}

/// The API server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its port could not be opened.
    #[error("cannot listen on port {port} of loopback: {source}")]
    Listen {
        /// The port.
        port: u16,
        /// The cause.
        source: std::io::Error,
    },
    /// Its certificates could not be created.
    #[error("cannot create the certificates of the API server: {0}")]
    Certificates(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Default for SandboxOptions {
    fn default() -> Self {
        Self {
            port: 0,
            reinitializing: Duration::from_millis(50),
        }
    }
}

impl Sandbox {
    /// Starts a sandbox.
    ///
    /// # Errors
    ///
    /// When the port is in use.
    pub fn start(options: SandboxOptions) -> BoxFuture<'static, Result<Self, StartError>> {
        // Boxed, so that the body is compiled once here and not again in every program that calls it.
        Box::pin(async move {
            let authority = Authority::new().map_err(|error| StartError::Certificates(error.into()))?;
            let tls = authority.serving().map_err(StartError::Certificates)?;
            let (listener, address) = bind(options.port).await?;
            let server = ApiServer::new(options.reinitializing);
            let stop = CancellationToken::new();
            controllers::start(&server, &authority.certificate(), &stop);
            let front = serve(&server, listener, &tls);
            Ok(Self {
                server,
                authority,
                address,
                tls,
                front: Mutex::new(Some(front)),
                _stop: stop.drop_guard(),
            })
        })
    }

    /// Returns a kubeconfig for a user with a client certificate.
    ///
    /// # Errors
    ///
    /// When the certificate cannot be created.
    pub fn kubeconfig(&self, user: &str, groups: &[&str]) -> Result<String, StartError> {
        let identity = self
            .authority
            .client(user, groups)
            .map_err(|error| StartError::Certificates(error.into()))?;
        Ok(self.kubeconfig_with(&[
            ("client-certificate-data", STANDARD.encode(identity.certificate)),
            ("client-key-data", STANDARD.encode(identity.key)),
        ]))
    }

    /// Returns a kubeconfig for a ServiceAccount, with a token that is valid for a day.
    pub fn kubeconfig_for_service_account(&self, namespace: &str, name: &str) -> String {
        let token = self.server.token(namespace, name, Duration::from_secs(86_400));
        self.kubeconfig_with(&[("token", token)])
    }

    fn kubeconfig_with(&self, user: &[(&str, String)]) -> String {
        let user: String = user
            .iter()
            .map(|(key, value)| format!("    {key}: {value}\n"))
            .collect();
        format!(
            "apiVersion: v1\nkind: Config\n\
             clusters:\n- name: sandbox\n  cluster:\n    server: https://{}\n    certificate-authority-data: {}\n\
             users:\n- name: user\n  user:\n{user}\
             contexts:\n- name: sandbox\n  context:\n    cluster: sandbox\n    user: user\n\
             current-context: sandbox\n",
            self.address,
            STANDARD.encode(self.authority.certificate()),
        )
    }

    /// Returns the address of the API server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Restarts the API server: closes every connection, stops listening for `down`, and then serves the same
    /// objects again.
    ///
    /// # Errors
    ///
    /// When another process has taken its port.
    pub async fn restart(&self, down: Duration) -> Result<(), StartError> {
        drop(self.front.lock().take());
        tokio::time::sleep(down).await;
        let (listener, _) = bind(self.address.port()).await?;
        *self.front.lock() = Some(serve(&self.server, listener, &self.tls));
        Ok(())
    }

    /// Returns the faults to inject into requests.
    pub fn faults(&self) -> &Faults {
        self.server.faults()
    }

    /// Returns all requests so far for an object or a collection.
    pub fn requests(&self) -> Vec<AuditEvent> {
        self.server.requests()
    }

    /// Returns the object store.
    pub fn store(&self) -> &Store {
        &self.server.shared().store
    }
}

async fn bind(port: u16) -> Result<(TcpListener, SocketAddr), StartError> {
    let listening = front::bind(port).await;
    listening.map_err(|source| StartError::Listen { port, source })
}

/// Serves at `listener` until the returned guard is dropped.
fn serve(server: &ApiServer, listener: TcpListener, tls: &Arc<ServerConfig>) -> DropGuard {
    let end = CancellationToken::new();
    tokio::spawn(front::serve(server.clone(), listener, tls.clone(), end.clone()));
    end.drop_guard()
}
