//! Faults of nodes during the operations of an administrator, and while Windlass is idle.
//!
//! Windlass and the sample run as they are shipped. A fault alone may fail calls, since a node that
//! loses power takes ready endpoints with it. An operation must not add to them.

use std::time::Duration;

use anyhow::Context;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::process::Command;

use super::{installation, traffic};
use crate::{
    load::{Load, Report},
    nodes::{NodeProgram, Nodes, execute},
    operator,
    request::text,
    sample::{self, NAMESPACE},
    steps::{self, check, is_rolled_out, list, until},
    test_cluster::TestCluster,
};

/// The Leases that kubelets renew.
const NODE_LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// How long a program is stopped. A node without power is down twice as long, so that its pods become unready.
const DOWN: Duration = Duration::from_secs(30);

/// The time limit for an operation or a recovery.
const PATIENCE: Duration = Duration::from_secs(600);

/// A fault of a node that serves webhooks of the sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeFault {
    KubeletStopped,
    ContainerdKilled,
    KubeProxyStopped,
    Drained,
    PowerLost,
}

/// What Windlass does during a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    Idle,
    CaRotation,
    Upgrade,
    Rollback,
}

/// Runs a fault while Windlass is idle, and during each operation.
pub(super) async fn operations_survive(cluster: &TestCluster, fault: NodeFault) -> anyhow::Result<()> {
    let nodes = Nodes::here()?;
    let outcome = run_all(cluster, &nodes, fault).await;
    nodes.start_all().await.and(outcome)
}

async fn run_all(cluster: &TestCluster, nodes: &Nodes, fault: NodeFault) -> anyhow::Result<()> {
    installation::install(cluster, &windlass::commands::manifests::image()).await?;
    installation::install_sample(cluster).await?;
    let load = traffic::start_outlasting(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    let mut allowed = 0;
    for activity in [
        Activity::Idle,
        Activity::CaRotation,
        Activity::Upgrade,
        Activity::Rollback,
    ] {
        load.lap();
        let (faulty, done) = tokio::join!(
            fault.cause(cluster, nodes, serving_node(cluster).await?),
            activity.run(cluster)
        );
        faulty?;
        done?;
        recovered(cluster, &Timestamp::now()).await?;
        let report = load.lap();
        tracing::info!(?fault, ?activity, requests = report.requests, failed = report.failed, gap = ?report.longest_gap, "Recovered");
        if activity == Activity::Idle {
            allowed = report.failed;
        }
        check_failures(fault, activity, &report, allowed)?;
    }
    finish(load).await
}

fn check_failures(fault: NodeFault, activity: Activity, report: &Report, allowed: u64) -> anyhow::Result<()> {
    anyhow::ensure!(
        report.failed <= allowed,
        "{} of {} calls failed during {activity:?} with {fault:?}, {allowed} while Windlass was idle:\n  {}",
        report.failed,
        report.requests,
        report.first_failures().join("\n  ")
    );
    Ok(())
}

/// Sends some more calls, of which none may fail.
async fn finish(load: Load) -> anyhow::Result<()> {
    load.lap();
    load.at_least(50).await?;
    load.stop().await.check()
}

impl Activity {
    async fn run(self, cluster: &TestCluster) -> anyhow::Result<()> {
        match self {
            Self::Idle => {
                tokio::time::sleep(DOWN).await;
                Ok(())
            }
            Self::CaRotation => {
                steps::rotate(&cluster.client, NAMESPACE, sample::CERTIFICATE, "ca", PATIENCE).await
            }
            Self::Upgrade => installation::install_bundle(cluster, &sample::bundle("sample.v2")).await,
            Self::Rollback => cluster
                .command
                .succeed(&["rollback", "sample", "--timeout", "10m"])
                .await
                .map(drop),
        }
    }
}

impl NodeFault {
    /// Causes the fault, and ends it.
    async fn cause(self, cluster: &TestCluster, nodes: &Nodes, node: u8) -> anyhow::Result<()> {
        let program = match self {
            Self::KubeletStopped => NodeProgram::Kubelet,
            Self::KubeProxyStopped => NodeProgram::KubeProxy,
            Self::ContainerdKilled => return nodes.kill(node, NodeProgram::Containerd).await,
            Self::Drained => return drain(cluster, node).await,
            Self::PowerLost => {
                nodes.cut_power(node).await?;
                tokio::time::sleep(2 * DOWN).await;
                return nodes.start_all().await;
            }
        };
        nodes.stop(node, program).await?;
        tokio::time::sleep(DOWN).await;
        nodes.start_all().await
    }
}

/// Returns the number of a node with a pod of the sample.
async fn serving_node(cluster: &TestCluster) -> anyhow::Result<u8> {
    let pods = list(&cluster.client, &format!("/api/v1/namespaces/{NAMESPACE}/pods")).await?;
    let node = pods
        .iter()
        .find_map(|pod| text(pod, "/spec/nodeName").strip_prefix("node-"));
    Ok(node.context("the sample has no pod")?.parse()?)
}

/// Drains the node as an administrator does, and makes it schedulable again.
async fn drain(cluster: &TestCluster, node: u8) -> anyhow::Result<()> {
    let name = format!("node-{node}");
    let mut drain = Command::new("kubectl");
    drain.args([
        "drain",
        &name,
        "--ignore-daemonsets",
        "--delete-emptydir-data",
        "--timeout",
        "300s",
    ]);
    execute(&mut drain).await?;
    let schedulable = json!({"spec": {"unschedulable": null}});
    let path = format!("/api/v1/nodes/{name}");
    steps::succeed(&cluster.client, "PATCH", &path, Some(&schedulable))
        .await
        .map(drop)
}

/// Waits until all kubelets have reported later than `since` that their nodes are ready, and all Deployments of Windlass and the sample are rolled out.
async fn recovered(cluster: &TestCluster, since: &Timestamp) -> anyhow::Result<()> {
    until("nodes and Deployments have recovered", PATIENCE, async || {
        let mut missing = Vec::new();
        for lease in list(&cluster.client, NODE_LEASES).await? {
            let renewed: Option<Timestamp> = text(&lease, "/spec/renewTime").parse().ok();
            if renewed.is_none_or(|renewed| renewed < *since) {
                missing.push(format!("Lease {}", lease["metadata"]["name"]));
            }
        }
        for node in list(&cluster.client, "/api/v1/nodes").await? {
            let conditions = node["status"]["conditions"].as_array();
            let is_ready = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
            if !conditions.is_some_and(|conditions| conditions.iter().any(is_ready)) {
                missing.push(node["metadata"]["name"].to_string());
            }
        }
        for namespace in [operator::NAMESPACE, NAMESPACE] {
            let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
            for deployment in list(&cluster.client, &path).await? {
                if !is_rolled_out(&deployment) {
                    missing.push(deployment["metadata"]["name"].to_string());
                }
            }
        }
        Ok(check(missing.is_empty(), || missing.join(", ")))
    })
    .await
}
