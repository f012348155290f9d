//! What every task of the node shares.

use std::{fs, net::Ipv4Addr, os::unix::fs::DirBuilderExt, sync::Arc};

use kube::Client;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{NodeError, NodeOptions, address::Pool, objects::Objects, process::Launcher};

/// What every task of the node shares.
pub(crate) struct NodeContext {
    pub(crate) client: Client,
    pub(crate) options: NodeOptions,
    /// The node's own address.
    pub(crate) host: Ipv4Addr,
    pub(crate) addresses: Arc<Pool>,
    pub(crate) objects: Objects,
    pub(crate) launcher: Launcher,
    /// All tasks of the node, those of containers too: the node has ended when they have.
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

impl NodeContext {
    /// Finds out what this machine can do, and starts to watch what pods mount.
    pub(crate) fn new(
        client: Client,
        options: NodeOptions,
        stop: CancellationToken,
    ) -> Result<Self, NodeError> {
        for folder in ["logs", "pods"] {
            let path = options.directory.join(folder);
            // What pods mount is nobody else's business: keys are among it.
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
            made.map_err(|source| NodeError::Folder { path, source })?;
        }
        let tasks = TaskTracker::new();
        let addresses = Pool::new(options.addresses, rand::random());
        let network = options.addresses;
        drop(
            addresses
                .claim()
                .map_err(|source| NodeError::Addresses { network, source })?,
        );
        Ok(Self {
            host: network.host(),
            addresses,
            objects: Objects::watch(&client, &tasks, &stop),
            launcher: Launcher::new(&options).map_err(NodeError::Spawner)?,
            client,
            options,
            tasks,
            stop,
        })
    }

    /// Where pods find the API server.
    pub(crate) fn api_server(&self) -> Option<(String, String)> {
        if let Some(address) = self.options.api_server {
            return Some((address.ip().to_string(), address.port().to_string()));
        }
        let service = self.objects.service("default", "kubernetes")?;
        let spec = service.spec.as_ref()?;
        let port = spec.ports.iter().flatten().next()?.port;
        Some((spec.cluster_ip.clone()?, port.to_string()))
    }
}
