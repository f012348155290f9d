//! Rewriting stored objects after their storage version has moved.

use std::{
    collections::BTreeMap,
    fmt,
    time::{Duration, Instant},
};

use anyhow::Context;
use clap::Args;
use parking_lot::Mutex;
use serde_json::{Value, json};
use windlass_scenarios::{
    audit::Right,
    load::{Load, Report},
    progress::StepPrinter,
    proxy::Proxy,
    resource::{Expectation, Resource},
    sample,
    steps::{BUNDLE_DEPLOYMENTS, current, get, set_source, succeed},
    stored,
    test_cluster::TestCluster,
};

use super::{
    bed::LoadArguments,
    figures::{mebibytes, requests, short, since},
    measurement::Measurement,
    started::{Started, set_replicas},
};

/// How a storage migration is measured: objects are stored, and rewritten by an upgrade to a new storage version. None is to
/// be lost, changed or left behind, and no kill is to begin it anew.
#[derive(Clone, Debug, Args)]
pub struct MigrationArguments {
    /// Number of stored objects.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub objects: u32,

    /// How often to kill and restart the operator, with equally many objects between two kills.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=20))]
    pub kills: u32,

    /// What is sent meanwhile.
    #[command(flatten)]
    pub load: LoadArguments,
}

/// Where the objects are stored.
const STORED: &str = "stored";

/// Where requests go to.
const TRAFFIC: &str = "traffic";

/// How often the status is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// What was seen while objects were rewritten.
#[derive(Debug, Default)]
struct Seen {
    /// What the status said last: how many are rewritten, of how many.
    progress: (u64, u64),
    /// When the first page began.
    begun: Option<Moment>,
    /// When the last page was done.
    ended: Option<Moment>,
    /// In bytes, as often as it was looked at.
    memory: Vec<u64>,
    kills: Vec<Kill>,
}

/// A moment, and what the operator had asked for until then.
#[derive(Clone, Debug)]
struct Moment {
    at: Instant,
    requests: BTreeMap<Right, u64>,
}

/// How the operator was killed.
#[derive(Clone, Debug)]
struct Kill {
    at: Instant,
    /// What the status said of the migration then.
    before: Value,
    /// When the status said something else, and how many were rewritten then; `None` where that was the end.
    after: Option<(Instant, Option<u64>)>,
    /// Whether it began anew.
    is_lost: bool,
}

impl fmt::Display for MigrationArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { objects, kills, load } = self;
        write!(
            f,
            "{objects} stored objects are rewritten, and the operator is killed {kills} times; {load}"
        )
    }
}

/// Measures it.
pub(super) async fn measure(
    arguments: &MigrationArguments,
    cluster: &TestCluster,
    progress: &StepPrinter,
) -> anyhow::Result<Measurement> {
    let bundle = cluster.bundle("sample.v1")?;
    let newest = sample::storing_newest(cluster)?;
    for bundle in [&bundle, &cluster.operator.bundle_dir.join(&newest)] {
        set_replicas(cluster, bundle, arguments.load.replicas)?;
    }
    let started = Started::new(cluster, &bundle, progress).await?;
    let count = usize::try_from(arguments.objects)?;
    let before = store(cluster, count, progress).await?;
    let widgets = Resource::widgets(&["v1", "v1beta1"], Expectation::Admitted);
    let mut load = Load::start_at_rate(&cluster.client, TRAFFIC, &[widgets], arguments.load.rate);
    let seen = Mutex::new(Seen {
        memory: vec![started.operator.memory()?],
        ..Seen::default()
    });
    let detail = || {
        let (rewritten, total) = seen.lock().progress;
        let report = load.report();
        format!(
            ", {rewritten} of {total} rewritten ({} requests, {} failed)",
            report.requests, report.failed
        )
    };
    let upgraded = upgrade(arguments, &newest, cluster, started, &seen);
    let upgraded = progress.watched("Upgrading", detail, upgraded).await;
    load.end().await;
    let mut missed = Vec::new();
    let checked = match upgraded {
        Ok(started) => {
            progress
                .step("Checking every object", check(cluster, started, &before))
                .await
        }
        Err(error) => Err(error),
    };
    if let Err(error) = checked {
        missed.push(format!("{error:#}"));
    }
    let report = load.report();
    if report.failed > 0 {
        missed.push(format!("{} requests failed", report.failed));
    }
    let seen = seen.into_inner();
    missed.extend(seen.missed(arguments));
    Ok(Measurement {
        tables: seen.tables(count, &report),
        failures: report.first_failures(),
        missed,
        summary: seen.summary(arguments.objects, &report),
    })
}

/// Makes the namespaces, and stores `count` objects in one of them: these, as they are read.
async fn store(cluster: &TestCluster, count: usize, progress: &StepPrinter) -> anyhow::Result<Vec<Value>> {
    for name in [STORED, TRAFFIC] {
        let namespace = json!({"metadata": {"name": name}});
        succeed(&cluster.client, "POST", "/api/v1/namespaces", Some(&namespace)).await?;
    }
    let stored = stored::store(&cluster.client, STORED, count);
    progress.step(&format!("Storing {count} objects"), stored).await?;
    stored::read(&cluster.client, STORED, "v1").await
}

/// Upgrades, and kills the operator as often as is asked for, at equal distances.
async fn upgrade(
    arguments: &MigrationArguments,
    bundle: &str,
    cluster: &TestCluster,
    mut started: Started,
    seen: &Mutex<Seen>,
) -> anyhow::Result<Started> {
    set_source(&cluster.client, "sample", bundle).await?;
    let limit = Instant::now() + arguments.load.duration.0.unsigned_abs();
    let mut kills = 0;
    loop {
        anyhow::ensure!(
            Instant::now() < limit,
            "timed out after {}",
            arguments.load.duration
        );
        tokio::time::sleep(LOOK).await;
        seen.lock().memory.push(started.operator.memory()?);
        let path = format!("{BUNDLE_DEPLOYMENTS}/sample");
        let deployed = get(&cluster.client, &path)
            .await?
            .context("no BundleDeployment")?;
        let migration = &deployed["status"]["storageMigrations"][0];
        if migration.is_null() {
            if !says_stored_anew(cluster).await? {
                continue;
            }
            seen.lock().note_end(&started.proxy);
            if current(&deployed, "Ready", "True").is_some() {
                return Ok(started);
            }
            continue;
        }
        seen.lock().note(migration, &started.proxy);
        let next_kill = u64::from(arguments.objects) * u64::from(kills + 1) / u64::from(arguments.kills + 1);
        if kills < arguments.kills && rewritten(migration) >= next_kill {
            kills += 1;
            let at = Instant::now();
            started = started.restart().await?;
            seen.lock().kills.push(Kill {
                at,
                before: migration.clone(),
                after: None,
                is_lost: false,
            });
        }
    }
}

async fn says_stored_anew(cluster: &TestCluster) -> anyhow::Result<bool> {
    let definition = sample::crd(cluster).await?;
    Ok(definition["status"]["storedVersions"] == json!(["v2"]))
}

/// Checks that each object is as it was, was written, and is stored in the new version. That ends the operator.
async fn check(cluster: &TestCluster, started: Started, before: &[Value]) -> anyhow::Result<()> {
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    let after = stored::read(&cluster.client, STORED, "v1").await?;
    for (before, after) in stored::compare(before, &after)? {
        anyhow::ensure!(
            version(&before) != version(&after),
            "{} was not written",
            before["metadata"]["name"]
        );
    }
    started.operator.stop().await?;
    stored::is_stored_as_v2(&cluster.client, STORED).await
}

fn rewritten(migration: &Value) -> u64 {
    migration["rewritten"].as_u64().unwrap_or_default()
}

impl Seen {
    /// Notes what the status says of the migration.
    fn note(&mut self, migration: &Value, proxy: &Proxy) {
        let total = migration["total"].as_u64().unwrap_or_default();
        self.progress = (rewritten(migration), total);
        if !migration["resourceVersion"].is_null() {
            self.begun.get_or_insert_with(|| Moment::of(proxy));
        }
        if let Some(kill) = self.kills.last_mut().filter(|kill| kill.after.is_none()) {
            kill.is_lost =
                kill.before["since"] != migration["since"] || rewritten(migration) < rewritten(&kill.before);
            if kill.is_lost || rewritten(migration) > rewritten(&kill.before) {
                kill.after = Some((Instant::now(), Some(rewritten(migration))));
            }
        }
    }

    /// Notes that everything is stored anew.
    fn note_end(&mut self, proxy: &Proxy) {
        let ended = self.ended.get_or_insert_with(|| Moment::of(proxy)).clone();
        if let Some(kill) = self.kills.last_mut() {
            kill.after.get_or_insert((ended.at, None));
        }
    }

    /// What should have been otherwise.
    fn missed(&self, arguments: &MigrationArguments) -> Vec<String> {
        let lost = self.kills.iter().filter(|kill| kill.is_lost);
        let mut missed: Vec<_> = lost
            .map(|kill| format!("restarted from the beginning after a kill: {kill}"))
            .collect();
        if u32::try_from(self.kills.len()) != Ok(arguments.kills) {
            missed.push(format!(
                "killed {} times, expected {}: store at least 100 objects for each kill",
                self.kills.len(),
                arguments.kills
            ));
        }
        missed
    }

    fn tables(&self, objects: usize, report: &Report) -> String {
        let mut parts = Vec::new();
        if let Some((begun, ended)) = self.begun.as_ref().zip(self.ended.as_ref()) {
            let sent = since(&begun.requests, ended.requests.clone());
            parts.push(requests(&sent, "an object", objects).to_string());
        }
        if let (Some(first), Some(last), Some(most)) =
            (self.memory.first(), self.memory.last(), self.memory.iter().max())
        {
            parts.push(format!(
                "Memory of the operator: {} before, {} at the end, {} at most.\n",
                mebibytes(*first),
                mebibytes(*last),
                mebibytes(*most)
            ));
        }
        let percentile = |percent| report.latencies.percentile(percent).map(short);
        if let Some((half, most)) = percentile(50).zip(percentile(99)) {
            parts.push(format!(
                "Requests of clients took {half} (p50) and {most} (p99); {} were answered 429 after a change of the CustomResourceDefinition.\n",
                report.reinitializing
            ));
        }
        parts.extend(self.kills.iter().map(|kill| format!("Killed: {kill}.\n")));
        parts.join("\n")
    }

    fn summary(&self, objects: u32, report: &Report) -> String {
        let took = self.begun.as_ref().zip(self.ended.as_ref());
        let took = took.map_or_else(
            || "no measurable time".to_owned(),
            |(begun, ended)| short(ended.at - begun.at),
        );
        let kills = self.kills.len();
        format!(
            "{objects} objects rewritten in {took}; {} requests during that time, {} failed; killed {kills} times, resumed {} times",
            report.requests,
            report.failed,
            kills
                - self
                    .kills
                    .iter()
                    .filter(|kill| kill.is_lost || kill.after.is_none())
                    .count()
        )
    }
}

impl Moment {
    fn of(proxy: &Proxy) -> Self {
        Self {
            at: Instant::now(),
            requests: proxy.requests(),
        }
    }
}

impl std::fmt::Display for Kill {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "after {} were rewritten", rewritten(&self.before))?;
        match self.after {
            Some((at, Some(rewritten))) => write!(f, "; {rewritten} were {} later", short(at - self.at)),
            Some((at, None)) => write!(f, "; all were {} later", short(at - self.at)),
            None => write!(f, "; no progress after that"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn killed_at(count: u64) -> Seen {
        let kill = Kill {
            at: Instant::now(),
            before: json!({"since": "a", "rewritten": count}),
            after: None,
            is_lost: false,
        };
        Seen {
            kills: vec![kill],
            ..Seen::default()
        }
    }

    #[tokio::test]
    async fn a_life_that_begins_anew_is_told_from_one_that_goes_on() {
        let proxy = Proxy::open(
            kube::Client::try_from(kube::Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap(),
        );
        let proxy = proxy.await.unwrap();
        for (since, count, resumes, is_lost) in [
            ("a", 200, false, false),
            ("a", 400, true, false),
            ("a", 0, true, true),
            ("b", 400, true, true),
        ] {
            let mut seen = killed_at(200);
            seen.note(&json!({"since": since, "rewritten": count, "total": 900}), &proxy);
            let kill = &seen.kills[0];
            assert_eq!(
                (kill.after.is_some(), kill.is_lost),
                (resumes, is_lost),
                "{since} {count}"
            );
        }
        let mut seen = killed_at(800);
        seen.note_end(&proxy);
        assert!(
            seen.kills[0]
                .to_string()
                .starts_with("after 800 were rewritten; all were ")
        );
    }
}
