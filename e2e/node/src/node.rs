//! The Node object and its heartbeat.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        coordination::v1::Lease,
        core::v1::{Namespace, Node},
    },
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::context::NodeContext;

/// The namespace of node heartbeats (KEP-589).
const LEASE_NAMESPACE: &str = "kube-node-lease";

/// How long a heartbeat holds, and how often it is sent: a kubelet's figures.
const LEASE_SECONDS: u64 = 40;
const HEARTBEAT: Duration = Duration::from_secs(10);

/// How soon a failed registration is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Registers the node, and keeps it Ready, for ever.
pub(crate) async fn keep_registered(context: Arc<NodeContext>) {
    loop {
        let wait = match register(&context).await {
            Ok(()) => HEARTBEAT,
            Err(error) => {
                tracing::warn!(%error, "Cannot register the node");
                RETRY
            }
        };
        tokio::time::sleep(wait).await;
    }
}

async fn register(context: &NodeContext) -> kube::Result<()> {
    let name = context.options.name.as_str();
    let nodes: Api<Node> = Api::all(context.client.clone());
    let manager = PatchParams::apply("windlass-node").force();
    let ready = match nodes.get_opt(name).await? {
        Some(node) => is_ready(&node),
        None => {
            nodes
                .patch(name, &manager, &Patch::Apply(node_object(name)))
                .await?;
            false
        }
    };
    if !ready {
        let now = Timestamp::now();
        let status = node_status(name, &context.host.to_string(), now);
        nodes.patch_status(name, &manager, &Patch::Apply(status)).await?;
        tracing::info!(node = name, address = %context.host, "Registered the node");
    }
    beat(context).await
}

/// Renews the Lease; makes its namespace where the API server has not.
async fn beat(context: &NodeContext) -> kube::Result<()> {
    let leases: Api<Lease> = Api::namespaced(context.client.clone(), LEASE_NAMESPACE);
    let manager = PatchParams::apply("windlass-node").force();
    let name = context.options.name.as_str();
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": MicroTime(Timestamp::now()),
        },
    });
    match leases.patch(name, &manager, &Patch::Apply(&lease)).await {
        Err(kube::Error::Api(status)) if status.code == 404 => {
            let mut namespace = Namespace::default();
            namespace.metadata.name = Some(LEASE_NAMESPACE.to_owned());
            Api::<Namespace>::all(context.client.clone())
                .create(&PostParams::default(), &namespace)
                .await?;
            leases.patch(name, &manager, &Patch::Apply(&lease)).await?;
            Ok(())
        }
        outcome => outcome.map(drop),
    }
}

fn is_ready(node: &Node) -> bool {
    let conditions = node
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    conditions
        .into_iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn node_object(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": architecture(),
        }},
    })
}

fn node_status(name: &str, address: &str, now: Timestamp) -> Value {
    let resources = json!({"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "1000"});
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "status": {
            "capacity": resources, "allocatable": resources,
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated",
                "lastHeartbeatTime": now, "lastTransitionTime": now,
            }],
        },
    })
}

/// This machine's architecture by the name that Go, and so Kubernetes, has for it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
