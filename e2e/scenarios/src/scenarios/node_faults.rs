//! Faults of nodes and API servers during the operations of an administrator, and while Windlass is idle.
//!
//! Windlass and the sample run as they are shipped. A fault alone may fail calls, since a node that
//! loses power takes ready endpoints with it. An operation must not add to them.

use std::{collections::HashSet, time::Duration};

use anyhow::Context;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::process::Command;

use super::{installation, traffic};
use crate::{
    kept_program::execute,
    load::{Failure, Load, Report},
    nodes::{NodeProgram, Nodes},
    operator,
    request::text,
    sample::{self, NAMESPACE},
    second_api_server::SecondApiServer,
    steps::{self, check, gone, is_rolled_out, list, until},
    test_cluster::TestCluster,
};

/// The Leases that kubelets renew.
const NODE_LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// How long an API server is down or paused: less than clients wait.
const API_SERVER_DOWN: Duration = Duration::from_secs(15);

/// How long a program is stopped. A node without power is down twice as long, so that its pods become unready.
const DOWN: Duration = Duration::from_secs(30);

/// The versions at which calls are made: those of every sample.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// What errors of the API server contain when a webhook server has ended.
const BROKEN_CONNECTIONS: [&str; 7] = [
    "connect: ",
    "net/http: ",
    "EOF",
    "broken pipe",
    "connection reset by peer",
    "deadline exceeded",
    "connection lost",
];

/// The time limit for an operation or a recovery.
const PATIENCE: Duration = Duration::from_secs(600);

/// How long Windlass runs between two kills.
const BETWEEN_KILLS: Duration = Duration::from_secs(8);

/// A bundle that is installed and uninstalled beside the sample.
const OTHER: &str = "conversion-only";

/// A fault of a node that serves webhooks of the sample, of Windlass' pods, or of one of two API servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeFault {
    KubeletStopped,
    ContainerdKilled,
    KubeProxyStopped,
    Drained,
    Deleted,
    PowerLost,
    /// Its processes are killed repeatedly, as by a node without memory.
    WindlassKilled,
    ApiServerKilled,
    /// Its caches lag when it resumes.
    ApiServerPaused,
}

/// What Windlass does during a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    Idle,
    Install,
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
    let load = start_load(cluster, fault).await?;
    at_least(&load, 50).await?;
    let mut allowed = 0;
    for activity in [
        Activity::Idle,
        Activity::Install,
        Activity::CaRotation,
        Activity::Upgrade,
        Activity::Rollback,
    ] {
        spread(cluster, nodes).await?;
        lap(&load);
        let (faulty, done) = tokio::join!(
            fault.cause(cluster, nodes, serving_node(cluster).await?),
            activity.run(cluster)
        );
        faulty?;
        done?;
        recovered(cluster, nodes.count()?, &Timestamp::now()).await?;
        let report = lap(&load);
        tracing::info!(?fault, ?activity, requests = report.requests, failed = report.failed, gap = ?report.longest_gap, failures = ?report.first_failures(), "Recovered");
        if activity == Activity::Idle {
            allowed = report.failed;
        }
        check_failures(fault, activity, &report, allowed)?;
    }
    finish(load).await
}

/// No answer may be wrong. A fault that takes serving pods or an API server with it may break a few connections, at any time; with
/// any other fault, at most as many calls fail as while Windlass is idle.
fn check_failures(fault: NodeFault, activity: Activity, report: &Report, allowed: u64) -> anyhow::Result<()> {
    let is_broken = |failure: &&Failure| BROKEN_CONNECTIONS.iter().any(|text| failure.text.contains(text));
    let broken = report.failures.iter().filter(is_broken).count() as u64;
    let allowed = match (activity, fault.breaks_connections()) {
        (Activity::Idle, _) => broken,
        (_, true) => broken.min(allowed.max(report.requests / 50)),
        (_, false) => allowed,
    };
    anyhow::ensure!(
        report.failed <= allowed,
        "{} of {} calls failed during {activity:?} with {fault:?}, {allowed} may fail:\n  {}",
        report.failed,
        report.requests,
        report.first_failures().join("\n  ")
    );
    Ok(())
}

/// Starts calls at each API server that has a part in the fault.
async fn start_load(cluster: &TestCluster, fault: NodeFault) -> anyhow::Result<Vec<Load>> {
    let mut load = vec![traffic::start_outlasting(cluster, &VERSIONS).await?];
    if matches!(fault, NodeFault::ApiServerKilled | NodeFault::ApiServerPaused) {
        let second = SecondApiServer::here()?.client().await?;
        load.push(traffic::start_outlasting_at(cluster, &second, "second", &VERSIONS).await?);
    }
    Ok(load)
}

async fn at_least(load: &[Load], requests: u64) -> anyhow::Result<()> {
    for one in load {
        one.at_least(requests).await?;
    }
    Ok(())
}

fn lap(load: &[Load]) -> Report {
    let mut report = Report::default();
    for one in load {
        report.add(one.lap());
    }
    report
}

/// Sends some more calls, of which none may fail.
async fn finish(load: Vec<Load>) -> anyhow::Result<()> {
    lap(&load);
    at_least(&load, 50).await?;
    for one in load {
        one.stop().await.check()?;
    }
    Ok(())
}

impl Activity {
    async fn run(self, cluster: &TestCluster) -> anyhow::Result<()> {
        match self {
            Self::Idle => {
                tokio::time::sleep(DOWN).await;
                Ok(())
            }
            Self::Install => {
                installation::install_as(cluster, OTHER, OTHER, &sample::bundle(OTHER)).await?;
                let arguments = ["uninstall", OTHER, "--timeout", "10m"];
                cluster.command.succeed(&arguments).await.map(drop)
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
    /// Reports whether serving pods end without notice, or an API server cannot go on with its calls.
    fn breaks_connections(self) -> bool {
        matches!(
            self,
            Self::Drained | Self::Deleted | Self::PowerLost | Self::ApiServerPaused
        )
    }

    /// Causes the fault, and ends it.
    async fn cause(self, cluster: &TestCluster, nodes: &Nodes, node: u8) -> anyhow::Result<()> {
        let program = match self {
            Self::KubeletStopped => NodeProgram::Kubelet,
            Self::KubeProxyStopped => NodeProgram::KubeProxy,
            Self::ContainerdKilled => return nodes.kill(node, NodeProgram::Containerd).await,
            Self::Drained => return drain(cluster, node).await,
            Self::Deleted => {
                let name = format!("node-{node}");
                execute(Command::new("kubectl").args(["delete", "node", &name])).await?;
                tokio::time::sleep(DOWN).await;
                // A kubelet registers its node when it starts.
                return nodes.kill(node, NodeProgram::Kubelet).await;
            }
            Self::WindlassKilled => {
                for _ in 0..3 {
                    nodes.kill_in_containers("windlass").await?;
                    tokio::time::sleep(BETWEEN_KILLS).await;
                }
                return Ok(());
            }
            Self::ApiServerKilled => {
                let server = SecondApiServer::here()?;
                server.kill().await?;
                tokio::time::sleep(API_SERVER_DOWN).await;
                return server.start().await;
            }
            Self::ApiServerPaused => {
                let server = SecondApiServer::here()?;
                server.pause().await?;
                tokio::time::sleep(API_SERVER_DOWN).await;
                return server.resume().await;
            }
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

/// Deletes pods of the sample until they run on more than one node: a fault must not take all of them.
async fn spread(cluster: &TestCluster, nodes: &Nodes) -> anyhow::Result<()> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods");
    for _ in 0..5 {
        let pods = list(&cluster.client, &path).await?;
        let used: HashSet<_> = pods.iter().map(|pod| text(pod, "/spec/nodeName")).collect();
        if used.len() > 1 {
            return Ok(());
        }
        let pod = pods.first().context("the sample has no pod")?;
        let pod = format!("{path}/{}", text(pod, "/metadata/name"));
        steps::succeed(&cluster.client, "DELETE", &pod, None).await?;
        gone(&cluster.client, &pod).await?;
        recovered(cluster, nodes.count()?, &Timestamp::now()).await?;
    }
    anyhow::bail!("all pods of the sample run on one node")
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

/// Waits until `count` kubelets have reported later than `since` that their nodes are ready, and all Deployments of Windlass and the
/// sample are rolled out.
async fn recovered(cluster: &TestCluster, count: u8, since: &Timestamp) -> anyhow::Result<()> {
    until("nodes and Deployments have recovered", PATIENCE, async || {
        let mut missing = Vec::new();
        for lease in list(&cluster.client, NODE_LEASES).await? {
            let renewed: Option<Timestamp> = text(&lease, "/spec/renewTime").parse().ok();
            if renewed.is_none_or(|renewed| renewed < *since) {
                missing.push(format!("Lease {}", lease["metadata"]["name"]));
            }
        }
        let nodes = list(&cluster.client, "/api/v1/nodes").await?;
        if nodes.len() < usize::from(count) {
            missing.push(format!("{} of {count} nodes", nodes.len()));
        }
        for node in nodes {
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
