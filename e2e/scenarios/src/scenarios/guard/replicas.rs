//! Replicas of the operator that answer for the guard.
//!
//! They are processes here, and no pods: their Service selects nothing, and their endpoints are written by hand.

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

/// The guard's Service, and the ServingCertificate that is made for it.
pub(super) const SERVICE: &str = "windlass";

/// The guard's configuration.
pub(super) const CONFIGURATION: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/windlass";

/// The EndpointSlices of the operator's namespace.
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/windlass-system/endpointslices";

/// A replica of the operator that answers for the guard, if it is asked.
pub struct Replica {
    /// The process.
    pub running: Running,
    stopped: Stopped,
}

/// A replica that does not run.
pub(super) struct Stopped {
    operator: OperatorProcess,
    address: SocketAddr,
    /// The Service that leads to it.
    service: &'static str,
}

/// Creates the guard's Service and its configuration, as `windlass manifests` has them.
///
/// # Errors
///
/// When the API server refuses.
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
    anyhow::ensure!(found == 2, "the guard is {found} objects");
    Ok(())
}

// === impl Replica ===

impl Replica {
    /// Starts a replica in `pod`. Nobody asks it yet.
    ///
    /// # Errors
    ///
    /// When the process cannot be started.
    pub async fn start(cluster: &TestCluster, pod: &str) -> anyhow::Result<Self> {
        Self::start_of(cluster, cluster.operator.replica(pod), SERVICE)
    }

    /// Starts this replica, behind a Service.
    ///
    /// # Errors
    ///
    /// When the process cannot be started.
    pub(in crate::scenarios) fn start_of(
        cluster: &TestCluster,
        mut operator: OperatorProcess,
        service: &'static str,
    ) -> anyhow::Result<Self> {
        let address = free_address(cluster.backing.address())?;
        operator
            .arguments
            .extend(["--admission-bind".to_owned(), address.to_string()]);
        let stopped = Stopped {
            operator,
            address,
            service,
        };
        stopped.start()
    }

    /// Makes it an endpoint, and waits until it is asked about the sample, which must be installed.
    ///
    /// # Errors
    ///
    /// When it is not asked.
    pub async fn join(&self, cluster: &TestCluster) -> anyhow::Result<()> {
        self.be_endpoint(cluster).await?;
        cluster.settled(operator::NAMESPACE, SERVICE).await?;
        writes::until_asked(cluster).await
    }

    /// Makes it an endpoint.
    pub(in crate::scenarios) async fn be_endpoint(&self, cluster: &TestCluster) -> anyhow::Result<()> {
        let Stopped {
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

    /// Where it answers.
    pub fn address(&self) -> SocketAddr {
        self.stopped.address
    }

    /// Makes it no endpoint any more.
    pub(in crate::scenarios) async fn leave(&self, cluster: &TestCluster) -> anyhow::Result<()> {
        let Stopped {
            operator, service, ..
        } = &self.stopped;
        delete(&cluster.client, &format!("{SLICES}/{service}-{}", operator.pod)).await
    }

    /// `kill -9`. It stays an endpoint.
    pub(super) async fn kill(self) -> anyhow::Result<Stopped> {
        self.running.kill().await?;
        Ok(self.stopped)
    }
}

// === impl Stopped ===

impl Stopped {
    /// Starts it where it was.
    pub(super) fn start(self) -> anyhow::Result<Replica> {
        Ok(Replica {
            running: self.operator.start()?,
            stopped: self,
        })
    }
}

/// A port that nobody listens on, at an address that no replica of the same scenario has: an address is one server.
fn free_address(host: Ipv4Addr) -> anyhow::Result<SocketAddr> {
    static REPLICAS: AtomicU32 = AtomicU32::new(0);
    // Pods have their webhooks on other ports: it is no harm if one gets the same address.
    let nth = REPLICAS.fetch_add(1, Ordering::Relaxed) % 200;
    let ip = Ipv4Addr::from_bits(host.to_bits() + nth);
    let listener = TcpListener::bind((ip, 0)).with_context(|| format!("listening on {ip}"))?;
    Ok(listener.local_addr()?)
}
