//! Replicas of the operator that serve the guard.
//!
//! They are processes instead of pods: their Service has no selector, and the scenarios write its endpoints.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::atomic::{AtomicU32, Ordering},
};

use anyhow::Context;
use serde_json::{Value, json};

use super::writes;
use crate::{
    operator::{self, OperatorProcess, Running},
    request::text,
    steps::{delete, succeed},
    test_cluster::{self, TestCluster},
};

/// The guard's Service, and the name of its ServingCertificate.
pub(super) const SERVICE: &str = "windlass";

/// The guard's ValidatingWebhookConfiguration.
pub(super) const CONFIGURATION: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/windlass";

/// The EndpointSlices of the operator's namespace.
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/windlass-system/endpointslices";

/// A replica of the operator that serves the guard.
pub struct Replica {
    /// The process.
    pub running: Running,
    stopped: StoppedReplica,
}

/// A replica without a process.
pub(super) struct StoppedReplica {
    operator: OperatorProcess,
    address: SocketAddr,
    /// The Service whose endpoint it is.
    service: &'static str,
}

/// Creates the guard's Service and webhook configuration from `windlass manifests`.
///
/// # Errors
///
/// When the API server rejects an object.
pub async fn install_guard(cluster: &TestCluster) -> anyhow::Result<()> {
    let mut found = 0;
    for mut object in windlass::commands::manifests::objects()? {
        let kind = text(&object, "/kind");
        if !["Service", "ValidatingWebhookConfiguration"].contains(&kind) {
            continue;
        }
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            spec.remove("selector");
        }
        test_cluster::apply(&cluster.client, &object).await?;
        found += 1;
    }
    anyhow::ensure!(found == 2, "the manifests contain {found} objects of the guard");
    Ok(())
}

impl Replica {
    /// Starts a replica in `pod` without making it an endpoint.
    ///
    /// # Errors
    ///
    /// When the process cannot be started.
    pub async fn start(cluster: &TestCluster, pod: &str) -> anyhow::Result<Self> {
        Self::start_behind(cluster, cluster.operator.replica(pod), SERVICE)
    }

    /// Starts the replica of `operator`, which serves behind `service`.
    ///
    /// # Errors
    ///
    /// When the process cannot be started.
    pub(in crate::scenarios) fn start_behind(
        cluster: &TestCluster,
        mut operator: OperatorProcess,
        service: &'static str,
    ) -> anyhow::Result<Self> {
        let address = free_address(cluster.backing.address())?;
        operator
            .arguments
            .extend(["--admission-bind".to_owned(), address.to_string()]);
        let stopped = StoppedReplica {
            operator,
            address,
            service,
        };
        stopped.start()
    }

    /// Makes the replica an endpoint, and waits until the guard denies writes to the sample, which must be
    /// installed.
    ///
    /// # Errors
    ///
    /// When the guard denies nothing.
    pub async fn join(&self, cluster: &TestCluster) -> anyhow::Result<()> {
        self.add_endpoint(cluster).await?;
        cluster.settled(operator::NAMESPACE, SERVICE).await?;
        writes::wait_until_guarded(cluster).await
    }

    /// Creates the EndpointSlice of the replica.
    pub(in crate::scenarios) async fn add_endpoint(&self, cluster: &TestCluster) -> anyhow::Result<()> {
        let StoppedReplica {
            operator,
            address,
            service,
        } = &self.stopped;
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": format!("{service}-{}", operator.pod), "labels": {
                "kubernetes.io/service-name": service, "endpointslice.kubernetes.io/managed-by": "windlass-e2e",
            }},
            "ports": [{"name": "admission", "port": address.port(), "protocol": "TCP"}],
            "endpoints": [{"addresses": [address.ip()], "conditions": {"ready": true}}],
        });
        succeed(&cluster.client, "POST", SLICES, Some(&slice)).await?;
        Ok(())
    }

    /// The address of the guard.
    pub fn address(&self) -> SocketAddr {
        self.stopped.address
    }

    /// Deletes the EndpointSlice of the replica.
    pub(in crate::scenarios) async fn remove_endpoint(&self, cluster: &TestCluster) -> anyhow::Result<()> {
        let StoppedReplica {
            operator, service, ..
        } = &self.stopped;
        delete(&cluster.client, &format!("{SLICES}/{service}-{}", operator.pod)).await
    }

    /// Kills the process with SIGKILL. The replica stays an endpoint.
    pub(super) async fn kill(self) -> anyhow::Result<StoppedReplica> {
        self.running.kill().await?;
        Ok(self.stopped)
    }
}

impl StoppedReplica {
    /// Starts the process with the same address.
    pub(super) fn start(self) -> anyhow::Result<Replica> {
        Ok(Replica {
            running: self.operator.start()?,
            stopped: self,
        })
    }
}

/// Returns a free port, at an address that no other replica of the scenario has, because each address counts
/// as one server.
fn free_address(host: Ipv4Addr) -> anyhow::Result<SocketAddr> {
    static REPLICAS: AtomicU32 = AtomicU32::new(0);
    // A pod may have the same address: its webhooks have other ports.
    let nth = REPLICAS.fetch_add(1, Ordering::Relaxed) % 200;
    let ip = Ipv4Addr::from_bits(host.to_bits() + nth);
    let listener = TcpListener::bind((ip, 0)).with_context(|| format!("listening on {ip}"))?;
    Ok(listener.local_addr()?)
}
