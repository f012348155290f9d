//! Connection to the remote cluster. It follows changes of the kubeconfig in its Secret.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use thiserror::Error;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use windlass_cluster::{
    RequestError, client, operator_config,
    remote::{InvalidKubeconfig, RemoteConnection, read_kubeconfig},
    telemetry::chain,
    watch::{Selector, Watch},
};
use windlass_object::{ObjectKey, object};

use crate::context::Context;

/// Why there is no connection to the remote cluster.
#[derive(Debug, Error)]
enum ConnectError {
    /// The Secret does not exist.
    #[error("{0}: not found")]
    Missing(ObjectKey),
    /// The Secret has no usable kubeconfig.
    #[error("{0}: {1}")]
    Kubeconfig(ObjectKey, InvalidKubeconfig),
    /// No client can be created. The error is omitted because it may contain secrets.
    #[error("{0}: cannot create a client from this kubeconfig: check that its key and certificate match")]
    Client(ObjectKey),
}

/// Connects to the remote cluster.
struct Connector {
    context: Arc<Context>,
    secret: ObjectKey,
    connection: RemoteConnection,
    /// Digest of the Secret's data as last read.
    read: Option<[u8; 32]>,
    /// A problem that still has to be published as an event.
    unpublished: Option<String>,
}

/// Time until the Secret is read again after an error.
const RETRY: Duration = Duration::from_secs(10);

/// Updates the connection according to the Secret, until `shutdown`.
pub(crate) async fn run(
    context: Arc<Context>,
    secret: ObjectKey,
    connection: RemoteConnection,
    shutdown: CancellationToken,
) -> Result<(), Infallible> {
    let mut connector = Connector {
        context,
        secret,
        connection,
        read: None,
        unpublished: None,
    };
    shutdown.run_until_cancelled(connector.follow_secret()).await;
    Ok(())
}

impl Connector {
    async fn follow_secret(&mut self) {
        let watch = Watch::all(windlass_cluster::kinds::SECRET)
            .within(self.secret.namespace.as_deref().unwrap_or_default())
            .selected(Selector::Name(self.secret.name.clone()));
        let context = self.context.clone();
        let (mut changes, mut progress) = (context.index.subscribe(), context.index.progress());
        context.watches.start(watch.clone());
        loop {
            let is_listed = context.index.is_complete(&watch);
            let connected = match is_listed {
                true => self.reconnect_if_changed().await,
                false => Ok(()),
            };
            let retry = async {
                match &connected {
                    Ok(()) => std::future::pending().await,
                    Err(_) => tokio::time::sleep(RETRY).await,
                }
            };
            if let Err(error) = &connected {
                warn!(
                    error = chain(error),
                    "Cannot read the kubeconfig of the remote cluster"
                );
            }
            let mut retry = pin!(retry);
            loop {
                tokio::select! {
                    change = changes.recv() => match change {
                        Ok(change) if change.key != self.secret => {}
                        Ok(_) | Err(RecvError::Lagged(_)) => break,
                        Err(RecvError::Closed) => return,
                    },
                    _ = progress.changed(), if !is_listed => break,
                    () = &mut retry => break,
                    // Only the leader publishes events.
                    _ = context.leadership.wait_until_acquired(), if self.unpublished.is_some() => self.publish_problem(),
                }
            }
        }
    }

    /// Reconnects if the Secret has changed.
    async fn reconnect_if_changed(&mut self) -> Result<(), RequestError> {
        let mut secret = self.context.cluster.read(&self.secret).await?;
        let mut digest = Sha256::new();
        // Neither hashing nor serializing a `Value` can fail.
        let _ = serde_json::to_writer(&mut digest, &secret.as_ref().map(|secret| &secret["data"]));
        let seen = Some(digest.finalize().into());
        if self.read == seen {
            return Ok(());
        }
        self.read = seen;
        let client = self.client(secret.as_ref());
        if let Some(secret) = &mut secret {
            object::wipe_data(secret);
        }
        match client {
            Ok(client) => {
                self.connection.connect(&client);
                info!(secret = %self.secret, "Connecting to the remote cluster");
                self.unpublished = None;
            }
            Err(error) => {
                let problem = error.to_string();
                warn!(error = problem, "No connection to the remote cluster");
                self.connection.disconnect(&problem);
                self.unpublished = Some(problem);
            }
        }
        Ok(())
    }

    fn client(&self, secret: Option<&Value>) -> Result<kube::Client, ConnectError> {
        let key = || self.secret.clone();
        let secret = secret.ok_or_else(|| ConnectError::Missing(key()))?;
        let config = read_kubeconfig(secret).map_err(|error| ConnectError::Kubeconfig(key(), error))?;
        client(operator_config(config)).map_err(|_| ConnectError::Client(key()))
    }

    fn publish_problem(&mut self) {
        let Some(problem) = self.unpublished.take() else {
            return;
        };
        let about = json!({
            "apiVersion": self.secret.api_version, "kind": self.secret.kind,
            "metadata": {"namespace": self.secret.namespace, "name": self.secret.name},
        });
        let known = self.context.index.find(&self.secret);
        let about = known.as_deref().unwrap_or(&about);
        let events = &self.context.events;
        events.warn(about, "Connect", "RemoteClusterUnavailable", &problem);
    }
}
