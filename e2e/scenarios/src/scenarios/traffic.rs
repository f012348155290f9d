//! Traffic as scenarios use it.

use std::time::{Duration, Instant};

use anyhow::Context;
use kube::Client;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{
    load::{Clients, Failure, Load, Report},
    request::{self, RequestAnswer},
    resource::{Expectation, Resource},
    sample,
    steps::succeed,
    test_cluster::TestCluster,
};

/// The namespace that traffic goes to.
pub(super) const NAMESPACE: &str = "traffic";

/// Workers that send requests side by side.
const WORKERS: usize = 4;

/// How long each worker waits between two requests: about 100 requests a second together.
const PAUSE: Duration = Duration::from_millis(30);

/// The same for about 60 requests a second.
const MODERATE_PAUSE: Duration = Duration::from_millis(60);

/// The same for a few requests a second, where others need the machine.
const LONG_PAUSE: Duration = Duration::from_millis(200);

/// How many requests a second are to be sent at every version that a client may use, where that is asked for.
const RATE: f64 = 50.0;

/// How long an API server may take to go by what it has stored.
const PROPAGATION: Duration = Duration::from_millis(400);

/// How long a visit rests between two objects: most of the time there is none that would hold up a removal.
const REST: Duration = Duration::from_millis(100);

/// Somebody who creates widgets, and deletes each at once, before, during and after a removal.
pub(super) struct Visits {
    stop: CancellationToken,
    task: JoinHandle<anyhow::Result<u32>>,
}

/// Sends requests to widgets at `versions` until stopped, through all webhooks of the sample.
pub(super) async fn start(cluster: &TestCluster, versions: &[&str]) -> anyhow::Result<Load> {
    start_expecting(cluster, versions, Expectation::Admitted).await
}

/// Sends requests to widgets at `versions` until stopped.
pub(super) async fn start_expecting(
    cluster: &TestCluster,
    versions: &[&str],
    expectation: Expectation,
) -> anyhow::Result<Load> {
    start_in(cluster, NAMESPACE, versions, expectation).await
}

/// Sends requests to widgets of a namespace at `versions` until stopped.
pub(super) async fn start_in(
    cluster: &TestCluster,
    name: &str,
    versions: &[&str],
    expectation: Expectation,
) -> anyhow::Result<Load> {
    let widgets = Resource::widgets(versions, expectation);
    begin(cluster, name, widgets, PAUSE, Clients::Strict).await
}

/// Sends requests to widgets of a namespace at a pace of at least [`RATE`] a second at each of `versions` until stopped. A
/// slow cluster makes it slower: [`finish_at`] says what was reached.
pub(super) async fn start_at(
    cluster: &TestCluster,
    name: &str,
    versions: &[&str],
    expectation: Expectation,
) -> anyhow::Result<Load> {
    namespace(cluster, name).await?;
    let count = u32::try_from(versions.len())?;
    let workers = WORKERS * versions.len();
    // The life of an object is a read at every version and five requests more, at the most; of those, a patch, a list and
    // a deletion go to each version in turn.
    let share = f64::from(count + 3) / f64::from(count * (count + 5));
    let pace = f64::from(u32::try_from(workers)?) / PAUSE.as_secs_f64() * share;
    anyhow::ensure!(pace >= RATE, "the pace is {pace:.1} a second at each version");
    let widgets = Resource::widgets(versions, expectation);
    Ok(Load::start(
        &cluster.client,
        name,
        &[widgets],
        workers,
        PAUSE,
        Clients::Strict,
    ))
}

/// Sends requests to widgets at `versions` until stopped, through all webhooks of the sample, and leaves a small machine
/// time for what is measured beside them.
pub(super) async fn start_moderately(cluster: &TestCluster, versions: &[&str]) -> anyhow::Result<Load> {
    let widgets = Resource::widgets(versions, Expectation::Admitted);
    begin(cluster, NAMESPACE, widgets, MODERATE_PAUSE, Clients::Strict).await
}

/// Sends a few requests a second to widgets at `versions` until stopped, through all webhooks of the sample.
pub(super) async fn start_slowly(cluster: &TestCluster, versions: &[&str]) -> anyhow::Result<Load> {
    let widgets = Resource::widgets(versions, Expectation::Admitted);
    begin(cluster, NAMESPACE, widgets, LONG_PAUSE, Clients::Strict).await
}

/// The same by clients that send a request again while the API server itself is down.
pub(super) async fn start_outlasting(cluster: &TestCluster, versions: &[&str]) -> anyhow::Result<Load> {
    let widgets = Resource::widgets(versions, Expectation::Admitted);
    begin(cluster, NAMESPACE, widgets, LONG_PAUSE, Clients::OutlastOutages).await
}

async fn begin(
    cluster: &TestCluster,
    name: &str,
    widgets: Resource,
    pause: Duration,
    clients: Clients,
) -> anyhow::Result<Load> {
    namespace(cluster, name).await?;
    Ok(Load::start(
        &cluster.client,
        name,
        &[widgets],
        WORKERS,
        pause,
        clients,
    ))
}

/// Creates and deletes widgets, at their storage version, until stopped or until they are no longer served: with and
/// without webhooks that must work. So must what no webhook is asked about.
pub(super) async fn visit(cluster: &TestCluster) -> anyhow::Result<Visits> {
    namespace(cluster, NAMESPACE).await?;
    let stop = CancellationToken::new();
    let task = tokio::spawn(visits(cluster.client.clone(), stop.clone()));
    Ok(Visits { stop, task })
}

async fn visits(client: Client, stop: CancellationToken) -> anyhow::Result<u32> {
    let widgets = sample::widgets(NAMESPACE, "v1");
    let config_maps = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    let mut served = true;
    let mut visit = 0;
    while !stop.is_cancelled() {
        visit += 1;
        let name = format!("visit-{visit}");
        let config_map = json!({"metadata": {"name": name}});
        come_and_go(&client, &config_maps, &name, &config_map, |_| false).await?;
        if served {
            let widget = json!({"apiVersion": format!("{}/v1", sample::GROUP), "kind": "Widget",
                "metadata": {"name": name}, "spec": {"size": 1, "color": "red"}});
            served = come_and_go(&client, &widgets, &name, &widget, is_withdrawn).await?;
        }
        tokio::time::sleep(REST).await;
    }
    Ok(visit)
}

/// Whether a kind is no longer served, or about to be: its CRD is being deleted.
fn is_withdrawn(answer: &RequestAnswer) -> bool {
    answer.code == 404 || answer.code == 403 && answer.message().contains("terminating")
}

/// Creates an object and deletes it; `false` when that is over.
async fn come_and_go(
    client: &Client,
    collection: &str,
    name: &str,
    object: &serde_json::Value,
    over: impl Fn(&RequestAnswer) -> bool,
) -> anyhow::Result<bool> {
    let created = request::send_patiently(client, "POST", collection, Some(object)).await?;
    if over(&created) {
        return Ok(false);
    }
    anyhow::ensure!(created.code == 201, "POST {collection} {name}: {created}");
    let path = format!("{collection}/{name}");
    let deleted = request::send_patiently(client, "DELETE", &path, None).await?;
    anyhow::ensure!(deleted.code < 300 || over(&deleted), "DELETE {path}: {deleted}");
    Ok(true)
}

/// Ends the traffic; fails if a request failed.
pub(super) async fn finish(load: Load) -> anyhow::Result<Report> {
    let report = load.stop().await;
    report.check()?;
    Ok(report)
}

/// Ends the traffic; fails if a request failed, or none was sent at one of `versions`.
pub(super) async fn finish_at(load: Load, versions: &[&str]) -> anyhow::Result<Report> {
    let report = finish(load).await?;
    let rates: Vec<_> = versions
        .iter()
        .map(|version| format!("{version}: {:.1}", report.rate_at(version)))
        .collect();
    tracing::info!(
        requests = report.requests,
        failed = report.failed,
        seconds = report.took.as_secs_f32(),
        a_second = rates.join(", "),
        reinitializing = report.reinitializing,
        p99 = ?report.latencies.percentile(99),
        "Sent"
    );
    sent_at(&report, versions)?;
    Ok(report)
}

/// Fails if no request was sent at one of `versions`.
pub(super) fn sent_at(report: &Report, versions: &[&str]) -> anyhow::Result<()> {
    for version in versions {
        anyhow::ensure!(
            report.by_version.contains_key(*version),
            "no request was sent at {version}"
        );
    }
    Ok(())
}

/// Fails if a request failed that was under way in none of `windows`, each from when somebody wrote something that calls
/// do not survive to when that was seen to be repaired.
pub(super) fn failed_only_in(report: &Report, windows: &[(Instant, Instant)]) -> anyhow::Result<()> {
    let is_forgiven = |failure: &&Failure| {
        windows
            .iter()
            .any(|(written, repaired)| failure.overlaps(*written, *repaired + PROPAGATION))
    };
    let outside: Vec<_> = report
        .failures
        .iter()
        .filter(|failure| !is_forgiven(failure))
        .map(|failure| failure.text.as_str())
        .collect();
    tracing::info!(
        requests = report.requests,
        failed = report.failed,
        outside = outside.len(),
        "Failed"
    );
    anyhow::ensure!(
        outside.is_empty(),
        "{} of {} calls failed although all was repaired:\n  {}",
        outside.len(),
        report.requests,
        outside.join("\n  ")
    );
    anyhow::ensure!(report.requests > 0, "no request was sent");
    Ok(())
}

/// Creates a namespace unless it is there.
pub(super) async fn namespace(cluster: &TestCluster, name: &str) -> anyhow::Result<()> {
    if crate::steps::get(&cluster.client, &format!("/api/v1/namespaces/{name}"))
        .await?
        .is_none()
    {
        let object = json!({"metadata": {"name": name}});
        succeed(&cluster.client, "POST", "/api/v1/namespaces", Some(&object)).await?;
    }
    Ok(())
}

// === impl Visits ===

impl Visits {
    /// Ends them; fails if one failed.
    pub(super) async fn finish(self) -> anyhow::Result<u32> {
        self.stop.cancel();
        let visits = self.task.await.context("the visits ended")??;
        anyhow::ensure!(visits > 0, "there was no visit");
        Ok(visits)
    }
}
