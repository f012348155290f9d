//! Traffic of scenarios.

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

/// The namespace of the written objects.
pub(super) const NAMESPACE: &str = "traffic";

/// The versions that the older and the newer sample serve.
pub(super) const COMMON: [&str; 2] = ["v1", "v1beta1"];

/// The version that only the newer sample serves.
pub(super) const NEWEST: &str = "v2";

/// The number of concurrent workers.
const WORKERS: usize = 4;

/// The pause of each worker between two requests: about 60 requests per second together.
const PAUSE: Duration = Duration::from_millis(60);

/// The pause for about 100 requests per second.
const SHORT_PAUSE: Duration = Duration::from_millis(30);

/// The pause for a few requests per second, which leaves the CPU to others.
const LONG_PAUSE: Duration = Duration::from_millis(200);

/// The minimum number of requests per second at every version in [`start_at`].
const RATE: f64 = 50.0;

/// How long an API server may take to observe a stored change.
const PROPAGATION: Duration = Duration::from_millis(400);

/// The pause between two objects, during which no object blocks a removal.
const REST: Duration = Duration::from_millis(100);

/// A client that creates and deletes widgets before, during and after a removal.
pub(super) struct Visits {
    stop: CancellationToken,
    task: JoinHandle<anyhow::Result<u32>>,
}

/// Sends requests to widgets at `versions` until stopped, through all webhooks of the sample.
pub(super) async fn start(cluster: &TestCluster, versions: &[&str]) -> anyhow::Result<Load> {
    start_expecting(cluster, versions, Expectation::Admitted).await
}

/// Sends requests to widgets at the versions of each sample until stopped, through all webhooks of the sample,
/// and at [`NEWEST`] while it is served.
pub(super) async fn start_with_newest(cluster: &TestCluster) -> anyhow::Result<Load> {
    start_load(cluster, NAMESPACE, widgets_with_newest(), PAUSE, Clients::Strict).await
}

/// Like [`start_with_newest`], with more requests and an informer for each version.
pub(super) async fn start_watched(cluster: &TestCluster) -> anyhow::Result<Load> {
    let widgets = widgets_with_newest();
    let mut load = start_load(cluster, NAMESPACE, widgets, SHORT_PAUSE, Clients::Strict).await?;
    load.watch(&cluster.client, NAMESPACE, &widgets_with_newest());
    Ok(load)
}

/// Like [`start_with_newest`], with a few requests per second.
pub(super) async fn start_slowly_with_newest(cluster: &TestCluster) -> anyhow::Result<Load> {
    start_load(
        cluster,
        NAMESPACE,
        widgets_with_newest(),
        LONG_PAUSE,
        Clients::Strict,
    )
    .await
}

fn widgets_with_newest() -> Resource {
    Resource::widgets(&COMMON, Expectation::Admitted).with_optional(&[NEWEST])
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
    start_load(cluster, name, widgets, PAUSE, Clients::Strict).await
}

/// Sends at least [`RATE`] requests per second to widgets of a namespace at each of `versions` until stopped.
/// A slow cluster reduces the rate; [`finish_at`] logs the actual one.
pub(super) async fn start_at(
    cluster: &TestCluster,
    name: &str,
    versions: &[&str],
    expectation: Expectation,
) -> anyhow::Result<Load> {
    start_widgets_at(cluster, name, Resource::widgets(versions, expectation)).await
}

/// Like [`start_at`], at the versions of each sample, through all webhooks of the sample, and at [`NEWEST`]
/// while it is served.
pub(super) async fn start_at_with_newest(cluster: &TestCluster) -> anyhow::Result<Load> {
    start_widgets_at(cluster, NAMESPACE, widgets_with_newest()).await
}

async fn start_widgets_at(cluster: &TestCluster, name: &str, widgets: Resource) -> anyhow::Result<Load> {
    create_namespace(cluster, name).await?;
    let count = u32::try_from(widgets.versions.len())?;
    let optional = u32::try_from(widgets.optional_versions.len())?;
    let workers = WORKERS * widgets.versions.len();
    // Each object causes one read per version, three requests per optional version and at most five others; of
    // those, a patch, a list and a deletion use the versions in turn.
    let share = f64::from(count + 3) / f64::from(count * (count + 5 + 3 * optional));
    let pace = f64::from(u32::try_from(workers)?) / SHORT_PAUSE.as_secs_f64() * share;
    anyhow::ensure!(
        pace >= RATE,
        "the rate is only {pace:.1} requests per second at each version"
    );
    Ok(Load::start(
        &cluster.client,
        name,
        &[widgets],
        workers,
        SHORT_PAUSE,
        Clients::Strict,
    ))
}

/// Sends a few requests per second to widgets at `versions` until stopped, through all webhooks of the
/// sample.
pub(super) async fn start_slowly(cluster: &TestCluster, versions: &[&str]) -> anyhow::Result<Load> {
    let widgets = Resource::widgets(versions, Expectation::Admitted);
    start_load(cluster, NAMESPACE, widgets, LONG_PAUSE, Clients::Strict).await
}

/// Like [`start_slowly`], with clients that retry while the API server itself is unavailable.
pub(super) async fn start_outlasting(cluster: &TestCluster, versions: &[&str]) -> anyhow::Result<Load> {
    let widgets = Resource::widgets(versions, Expectation::Admitted);
    start_load(cluster, NAMESPACE, widgets, LONG_PAUSE, Clients::OutlastOutages).await
}

/// Like [`start_outlasting`], in a namespace, with the API server of `client`.
pub(super) async fn start_outlasting_at(
    cluster: &TestCluster,
    client: &Client,
    name: &str,
    versions: &[&str],
) -> anyhow::Result<Load> {
    create_namespace(cluster, name).await?;
    let widgets = Resource::widgets(versions, Expectation::Admitted);
    let clients = Clients::OutlastOutages;
    Ok(Load::start(
        client,
        name,
        &[widgets],
        WORKERS,
        LONG_PAUSE,
        clients,
    ))
}

async fn start_load(
    cluster: &TestCluster,
    name: &str,
    widgets: Resource,
    pause: Duration,
    clients: Clients,
) -> anyhow::Result<Load> {
    create_namespace(cluster, name).await?;
    Ok(Load::start(
        &cluster.client,
        name,
        &[widgets],
        WORKERS,
        pause,
        clients,
    ))
}

/// Creates and deletes widgets at their storage version until stopped, or until they are not served.
/// ConfigMaps, which no webhook matches, are created and deleted all the time. No write may fail.
pub(super) async fn start_visits(cluster: &TestCluster) -> anyhow::Result<Visits> {
    create_namespace(cluster, NAMESPACE).await?;
    let stop = CancellationToken::new();
    let task = tokio::spawn(run_visits(cluster.client.clone(), stop.clone()));
    Ok(Visits { stop, task })
}

async fn run_visits(client: Client, stop: CancellationToken) -> anyhow::Result<u32> {
    let widgets = sample::widgets(NAMESPACE, "v1");
    let config_maps = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    let mut served = true;
    let mut visit = 0;
    while !stop.is_cancelled() {
        visit += 1;
        let name = format!("visit-{visit}");
        let config_map = json!({"metadata": {"name": name}});
        create_and_delete(&client, &config_maps, &name, &config_map, |_| false).await?;
        if served {
            let widget = json!({"apiVersion": format!("{}/v1", sample::GROUP), "kind": "Widget",
                "metadata": {"name": name}, "spec": {"size": 1, "color": "red"}});
            served = create_and_delete(&client, &widgets, &name, &widget, is_withdrawn).await?;
        }
        tokio::time::sleep(REST).await;
    }
    Ok(visit)
}

/// Reports whether a kind is not served, or its CRD is being deleted.
fn is_withdrawn(answer: &RequestAnswer) -> bool {
    answer.code == 404 || answer.code == 403 && answer.message().contains("terminating")
}

/// Creates and deletes an object; returns `false` when the kind is not served.
async fn create_and_delete(
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

/// Stops the traffic; fails if a request failed.
pub(super) async fn finish(load: Load) -> anyhow::Result<Report> {
    let report = load.stop().await;
    report.check()?;
    Ok(report)
}

/// Stops the traffic; fails if a request failed, or none was sent at one of `versions`.
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
    check_sent_at(&report, versions)?;
    Ok(report)
}

/// Fails if no request was sent at one of `versions`.
pub(super) fn check_sent_at(report: &Report, versions: &[&str]) -> anyhow::Result<()> {
    for version in versions {
        anyhow::ensure!(
            report.by_version.contains_key(*version),
            "no request was sent at {version}"
        );
    }
    Ok(())
}

/// Fails if a request failed outside of `windows`. A window is from a harmful write of another client until
/// its repair.
pub(super) fn check_failures_within(report: &Report, windows: &[(Instant, Instant)]) -> anyhow::Result<()> {
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
        "{} of {} calls failed outside of the allowed times:\n  {}",
        outside.len(),
        report.requests,
        outside.join("\n  ")
    );
    anyhow::ensure!(report.requests > 0, "no request was sent");
    Ok(())
}

/// Creates a namespace unless it exists.
pub(super) async fn create_namespace(cluster: &TestCluster, name: &str) -> anyhow::Result<()> {
    if crate::steps::get(&cluster.client, &format!("/api/v1/namespaces/{name}"))
        .await?
        .is_none()
    {
        let object = json!({"metadata": {"name": name}});
        succeed(&cluster.client, "POST", "/api/v1/namespaces", Some(&object)).await?;
    }
    Ok(())
}

impl Visits {
    /// Stops the client; fails if a write failed.
    pub(super) async fn finish(self) -> anyhow::Result<u32> {
        self.stop.cancel();
        let visits = self.task.await.context("the client panicked")??;
        anyhow::ensure!(visits > 0, "no object was created");
        Ok(visits)
    }
}
