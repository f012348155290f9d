//! Traces of installs and rotations that a collector receives.

use std::{collections::BTreeSet, fs};

use crate::{
    collector::{CollectedSpan, Collector},
    operator::OperatorProcess,
    proxy::Cut,
    sample,
    steps::{PATIENCE, check, until},
    test_cluster::TestCluster,
};

/// The number of writes after which an install is cut off: its revision is recorded, and objects are applied.
const WRITES_OF_INSTALL: u64 = 12;

/// The number of writes after which a requested rotation is cut off: the request is recorded, and the next CA
/// signs.
const WRITES_OF_ROTATION: u64 = 3;

pub(super) async fn an_install_and_a_rotation_are_one_trace_each_across_restarts(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let collector = Collector::start().await?;
    let operator = tracing_operator(&cluster.operator, &collector);
    let (first, proxy) = cluster.proxied(&operator).await?;
    proxy.cut_at(WRITES_OF_INSTALL, Cut::After);
    let running = first.start()?;
    let killed = async {
        proxy.closed().await;
        tracing::info!(writes = ?proxy.log(), "Cut off");
        wait_for_span(&collector, "the install", |span| {
            span.attributes.contains_key("url.path")
        })
        .await?;
        let lost = collector.spans();
        running.kill().await?;
        Ok((operator.start()?, lost))
    };
    let (_, (running, lost)) = tokio::try_join!(sample::install(cluster, "sample.v1"), killed)?;
    sample::settled(cluster).await?;
    let install = wait_for_single_trace(&collector, "install", "windlass.revision", "1", &lost).await?;
    let phases = install.phases();
    anyhow::ensure!(
        phases.is_superset(&BTreeSet::from([
            "rollout",
            "proof",
            "arming",
            "settle",
            "migration"
        ])),
        "an install has the phases {phases:?}"
    );
    anyhow::ensure!(
        install.waits().contains("RollingOut"),
        "waits: {:?}",
        install.waits()
    );
    install.check_started_in(&lost)?;
    anyhow::ensure!(install.has("POST webhook") && install.has("PATCH customresourcedefinitions"));
    let first = wait_for_single_trace(&collector, "rotation", "windlass.ca_generation", "1", &lost).await?;
    anyhow::ensure!(first.phases() == BTreeSet::from(["Distributing"]), "{first:?}");
    running.stop().await?;

    let (second, proxy) = cluster.proxied(&operator).await?;
    let running = second.start()?;
    running.ready().await?;
    sample::settled(cluster).await?;
    let known: BTreeSet<_> = collector.spans().into_iter().map(|span| span.trace).collect();
    proxy.cut_at(WRITES_OF_ROTATION, Cut::After);
    sample::request_rotation(cluster, "ca").await?;
    proxy.closed().await;
    tracing::info!(writes = ?proxy.log(), "Cut off");
    wait_for_span(&collector, "the rotation", |span| !known.contains(&span.trace)).await?;
    let lost = collector.spans();
    running.kill().await?;
    let running = operator.start()?;
    let rotation =
        wait_for_single_trace(&collector, "rotation", "windlass.ca_generation", "2", &lost).await?;
    let phases = rotation.phases();
    anyhow::ensure!(phases == BTreeSet::from(["Signing", "Retiring"]), "{phases:?}");
    rotation.check_started_in(&lost)?;
    anyhow::ensure!(rotation.has("TLS handshake") && rotation.has("PATCH customresourcedefinitions"));
    running.stop().await?;

    let spans = collector.spans();
    let text = format!("{spans:?}");
    anyhow::ensure!(!text.contains("PRIVATE KEY"), "a span contains a private key");
    anyhow::ensure!(
        spans
            .iter()
            .all(|span| span.service == "windlass" && span.end >= span.start)
    );
    Ok(())
}

pub(super) async fn a_hanging_trace_collector_delays_nothing(cluster: &TestCluster) -> anyhow::Result<()> {
    let collector = Collector::start().await?;
    collector.hang(true);
    let running = tracing_operator(&cluster.operator, &collector).start()?;
    sample::install(cluster, "sample.v1").await?;
    sample::rotate(cluster, "ca").await?;
    let counted = async |outcome: &str| {
        let name = format!(r#"windlass_trace_spans_total{{outcome="{outcome}"}}"#);
        until(&name, PATIENCE, async || {
            let metrics = running.ask("/metrics").await?;
            Ok(check(metrics.contains(&name), || metrics.clone()))
        })
        .await
    };
    counted("failed").await?;
    collector.hang(false);
    counted("exported").await?;
    sample::rotate(cluster, "ca").await?;
    wait_for_single_trace(&collector, "rotation", "windlass.ca_generation", "3", &[]).await?;
    collector.hang(true);
    sample::rotate(cluster, "ca").await?;
    // A restart does not wait long for the collector.
    running.stop().await?;
    let log = fs::read_to_string(&cluster.operator.log)?;
    let count = log
        .lines()
        .filter(|line| line.contains("Cannot send traces"))
        .count();
    anyhow::ensure!((1..=2).contains(&count), "it was logged {count} times");
    Ok(())
}

/// Returns the operator that sends its traces to `collector`.
fn tracing_operator(operator: &OperatorProcess, collector: &Collector) -> OperatorProcess {
    let mut operator = operator.clone();
    operator
        .arguments
        .extend(["--otlp-endpoint".to_owned(), collector.url()]);
    operator
}

/// Waits until the collector has received a span.
async fn wait_for_span(
    collector: &Collector,
    what: &str,
    is_it: impl Fn(&CollectedSpan) -> bool,
) -> anyhow::Result<()> {
    until(
        &format!("the collector has received {what}"),
        PATIENCE,
        async || {
            let spans = collector.spans();
            Ok(check(spans.iter().any(&is_it), || {
                format!("{} spans", spans.len())
            }))
        },
    )
    .await
}

/// The spans of one trace.
#[derive(Debug)]
struct CollectedTrace {
    root: CollectedSpan,
    spans: Vec<CollectedSpan>,
}

/// Waits for a trace with this root, and checks that it is the only one and that every span has a parent.
/// Spans that a killed process sent (`lost`) may have a parent that it could not send.
async fn wait_for_single_trace(
    collector: &Collector,
    name: &str,
    attribute: &str,
    value: &str,
    lost: &[CollectedSpan],
) -> anyhow::Result<CollectedTrace> {
    let is_root = |span: &&CollectedSpan| {
        span.name == name
            && span.parent.is_empty()
            && span.attributes.get(attribute).is_some_and(|found| found == value)
    };
    wait_for_span(collector, &format!("{name} {value}"), |span| is_root(&span)).await?;
    let all = collector.spans();
    let roots: Vec<_> = all.iter().filter(is_root).cloned().collect();
    let [root] = &roots[..] else {
        anyhow::bail!("{name} {value} has {} roots: {roots:?}", roots.len());
    };
    let spans: Vec<_> = all
        .iter()
        .filter(|span| span.trace == root.trace && !span.parent.is_empty())
        .cloned()
        .collect();
    let ids: BTreeSet<_> = spans.iter().chain([root]).map(|span| &span.id).collect();
    let orphans: Vec<_> = spans
        .iter()
        .filter(|span| !ids.contains(&span.parent) && !lost.contains(span))
        .collect();
    anyhow::ensure!(
        orphans.is_empty(),
        "{name} {value} has spans without their parents: {orphans:?}"
    );
    // The trace is found by its root, so all spans of the same object must be in it.
    let others = all.iter().filter(|span| {
        span.trace != root.trace
            && root
                .attributes
                .iter()
                .all(|(key, found)| span.attributes.get(key) == Some(found))
    });
    anyhow::ensure!(others.count() == 0, "{name} {value} is in several traces");
    anyhow::ensure!(root.succeeded, "{root:?}");
    Ok(CollectedTrace {
        root: root.clone(),
        spans,
    })
}

impl CollectedTrace {
    /// Returns the names of the spans directly below the root.
    fn phases(&self) -> BTreeSet<&str> {
        let phases = self.spans.iter().filter(|span| span.parent == self.root.id);
        phases.map(|span| span.name.as_str()).collect()
    }

    /// Returns the reasons of waits.
    fn waits(&self) -> BTreeSet<&str> {
        let waits = self.spans.iter().filter(|span| span.name == "wait");
        waits
            .filter_map(|span| span.attributes.get("windlass.reason"))
            .map(String::as_str)
            .collect()
    }

    /// Checks that the trace has spans in `lost` and later ones.
    fn check_started_in(&self, lost: &[CollectedSpan]) -> anyhow::Result<()> {
        let before = lost.iter().filter(|span| span.trace == self.root.trace).count();
        anyhow::ensure!(
            (1..self.spans.len()).contains(&before),
            "{before} of {} spans were sent before the operator was killed",
            self.spans.len()
        );
        Ok(())
    }

    fn has(&self, name: &str) -> bool {
        self.spans.iter().any(|span| span.name == name)
    }
}
