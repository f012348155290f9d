//! What is told of rotations and installs to a collector.

use std::{collections::BTreeSet, fs};

use crate::{
    collector::{CollectedSpan, Collector},
    operator::OperatorProcess,
    proxy::Cut,
    sample,
    steps::{PATIENCE, check, until},
    test_cluster::TestCluster,
};

/// After how many writes an install is cut off: its revision is recorded, and objects are applied.
const WRITES_OF_INSTALL: u64 = 12;

/// After how many writes a rotation is cut off that was asked for: the request was noted, and the next CA signs.
const WRITES_OF_ROTATION: u64 = 3;

pub(super) async fn an_install_and_a_rotation_are_one_trace_each_whoever_dies_meanwhile(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let collector = Collector::start().await?;
    let operator = telling(&cluster.operator, &collector);
    let (first, proxy) = cluster.proxied(&operator).await?;
    proxy.cut_at(WRITES_OF_INSTALL, Cut::After);
    let running = first.start()?;
    let killed = async {
        proxy.closed().await;
        tracing::info!(writes = ?proxy.log(), "Cut off");
        told(&collector, "the install", |span| {
            span.attributes.contains_key("url.path")
        })
        .await?;
        let lost = collector.spans();
        running.kill().await?;
        Ok((operator.start()?, lost))
    };
    let (_, (running, lost)) = tokio::try_join!(sample::install(cluster, "sample.v1"), killed)?;
    sample::settled(cluster).await?;
    let install = is_one_trace(&collector, "install", "windlass.revision", "1", &lost).await?;
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
    install.was_begun_in(&lost)?;
    anyhow::ensure!(install.has("POST webhook") && install.has("PATCH customresourcedefinitions"));
    let first = is_one_trace(&collector, "rotation", "windlass.ca_generation", "1", &lost).await?;
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
    told(&collector, "the rotation", |span| !known.contains(&span.trace)).await?;
    let lost = collector.spans();
    running.kill().await?;
    let running = operator.start()?;
    let rotation = is_one_trace(&collector, "rotation", "windlass.ca_generation", "2", &lost).await?;
    let phases = rotation.phases();
    anyhow::ensure!(phases == BTreeSet::from(["Signing", "Retiring"]), "{phases:?}");
    rotation.was_begun_in(&lost)?;
    anyhow::ensure!(rotation.has("TLS handshake") && rotation.has("PATCH customresourcedefinitions"));
    running.stop().await?;

    let spans = collector.spans();
    let spoken = format!("{spans:?}");
    anyhow::ensure!(!spoken.contains("PRIVATE KEY"), "a span has a key");
    anyhow::ensure!(
        spans
            .iter()
            .all(|span| span.service == "windlass" && span.end >= span.start)
    );
    Ok(())
}

pub(super) async fn a_collector_that_hangs_holds_nothing_up(cluster: &TestCluster) -> anyhow::Result<()> {
    let collector = Collector::start().await?;
    collector.hang(true);
    let running = telling(&cluster.operator, &collector).start()?;
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
    is_one_trace(&collector, "rotation", "windlass.ca_generation", "3", &[]).await?;
    collector.hang(true);
    sample::rotate(cluster, "ca").await?;
    // It does not wait for an answer for long.
    running.stop().await?;
    let log = fs::read_to_string(&cluster.operator.log)?;
    let said = log
        .lines()
        .filter(|line| line.contains("Cannot send traces"))
        .count();
    anyhow::ensure!((1..=2).contains(&said), "it was said {said} times");
    Ok(())
}

/// The operator that tells `collector`.
fn telling(operator: &OperatorProcess, collector: &Collector) -> OperatorProcess {
    let mut operator = operator.clone();
    operator
        .arguments
        .extend(["--otlp-endpoint".to_owned(), collector.url()]);
    operator
}

/// Waits until a span is told.
async fn told(
    collector: &Collector,
    what: &str,
    is_it: impl Fn(&CollectedSpan) -> bool,
) -> anyhow::Result<()> {
    until(&format!("{what} is told of"), PATIENCE, async || {
        let spans = collector.spans();
        Ok(check(spans.iter().any(&is_it), || {
            format!("{} spans", spans.len())
        }))
    })
    .await
}

/// The spans of one trace.
#[derive(Debug)]
struct CollectedTrace {
    root: CollectedSpan,
    spans: Vec<CollectedSpan>,
}

/// Waits until there is a trace of this root, and sees that there is no other, and that everything in it is below something. What
/// was told before by a process that then died may be below what that could not tell any more.
async fn is_one_trace(
    collector: &Collector,
    name: &str,
    attribute: &str,
    value: &str,
    lost: &[CollectedSpan],
) -> anyhow::Result<CollectedTrace> {
    let is_root = |span: &&CollectedSpan| {
        span.name == name
            && span.parent.is_empty()
            && span.attributes.get(attribute).is_some_and(|said| said == value)
    };
    told(collector, &format!("{name} {value}"), |span| is_root(&span)).await?;
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
        "of {name} {value} there are orphans: {orphans:?}"
    );
    // The trace is found by its root alone, so what is said of the same object must be in it.
    let others = all.iter().filter(|span| {
        span.trace != root.trace
            && root
                .attributes
                .iter()
                .all(|(key, said)| span.attributes.get(key) == Some(said))
    });
    anyhow::ensure!(others.count() == 0, "{name} {value} is in several traces");
    anyhow::ensure!(root.succeeded, "{root:?}");
    Ok(CollectedTrace {
        root: root.clone(),
        spans,
    })
}

// === impl CollectedTrace ===

impl CollectedTrace {
    /// What is right below the root.
    fn phases(&self) -> BTreeSet<&str> {
        let phases = self.spans.iter().filter(|span| span.parent == self.root.id);
        phases.map(|span| span.name.as_str()).collect()
    }

    /// What was waited for.
    fn waits(&self) -> BTreeSet<&str> {
        let waits = self.spans.iter().filter(|span| span.name == "wait");
        waits
            .filter_map(|span| span.attributes.get("windlass.reason"))
            .map(String::as_str)
            .collect()
    }

    /// Whether something of it is in `lost`, and more was told after that.
    fn was_begun_in(&self, lost: &[CollectedSpan]) -> anyhow::Result<()> {
        let before = lost.iter().filter(|span| span.trace == self.root.trace).count();
        anyhow::ensure!(
            (1..self.spans.len()).contains(&before),
            "of {} spans, {before} were told before the operator was killed",
            self.spans.len()
        );
        Ok(())
    }

    fn has(&self, name: &str) -> bool {
        self.spans.iter().any(|span| span.name == name)
    }
}
