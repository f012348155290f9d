//! Rewriting stored objects after their storage version has moved.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::Context;
use futures::{StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    Outcome,
    arguments::Arguments,
    figures::{mebibytes, requests, short, since},
    started::Started,
};
use crate::{
    bed::Bed,
    load::Load,
    progress::Progress,
    resource::{Expectation, Resource},
    sample,
    steps::{BUNDLE_DEPLOYMENTS, current, get, set_source, succeed},
};

/// Where the objects are stored.
const STORED: &str = "stored";

/// Where requests go to.
const TRAFFIC: &str = "traffic";

/// How many objects are created side by side.
const CREATORS: usize = 16;

/// How often the status is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// How many objects are read at a time.
const PAGE: u32 = 500;

/// What was seen while objects were rewritten.
#[derive(Debug, Default)]
struct Seen {
    /// What the status said last: how many are rewritten, of how many.
    progress: (u64, u64),
    begun: Option<Instant>,
    ended: Option<Instant>,
    memory: Vec<u64>,
    /// How far it was at each kill, and where the next life went on.
    kills: Vec<(u64, Option<u64>)>,
}

/// Measures it.
pub(super) async fn measure(
    arguments: &Arguments,
    objects: u32,
    bed: &Bed,
    progress: &Progress,
) -> anyhow::Result<Outcome> {
    let bundle = bed.bundle("sample.v1")?;
    let started = Started::new(bed, &bundle, progress).await?;
    for name in [STORED, TRAFFIC] {
        let namespace = json!({"metadata": {"name": name}});
        succeed(&bed.client, "POST", "/api/v1/namespaces", Some(&namespace)).await?;
    }
    progress
        .step(&format!("Storing {objects} objects"), store(bed, objects))
        .await?;
    let widgets = Resource::widgets(&["v1", "v1beta1"], Expectation::Admitted);
    let mut load = Load::start_at_rate(&bed.client, TRAFFIC, &[widgets], arguments.rate);
    let before = started.gate.requests();
    let first_memory = started.operator.memory()?;
    let seen = Mutex::new(Seen::default());
    let detail = || {
        let (rewritten, total) = seen.lock().progress;
        let report = load.report();
        format!(
            ", {rewritten} of {total} rewritten ({} requests, {} failed)",
            report.requests, report.failed
        )
    };
    let upgraded = progress
        .watched(
            "Upgrading",
            detail,
            upgrade(arguments, objects, bed, started, &seen),
        )
        .await;
    load.end().await;
    let report = load.report();
    let seen = seen.into_inner();
    let mut missed = Vec::new();
    let sent = match upgraded {
        Ok(started) => since(&before, started.gate.requests()),
        Err(error) => {
            missed.push(format!("{error:#}"));
            BTreeMap::new()
        }
    };
    if missed.is_empty() {
        missed.extend(check(bed, objects).await?);
    }
    if report.failed > 0 {
        missed.push(format!("{} requests failed", report.failed));
    }
    let took = seen.begun.zip(seen.ended);
    let took = took.map_or(Duration::ZERO, |(begun, ended)| ended - begun);
    let count = usize::try_from(objects).unwrap_or(usize::MAX);
    let mut parts = vec![requests(&sent, "an object", count).to_string()];
    let memory = [
        Some(first_memory),
        seen.memory.last().copied(),
        seen.memory.iter().max().copied(),
    ];
    if let [Some(first), Some(last), Some(most)] = memory {
        parts.push(format!(
            "Memory of the operator: {} before, {} at the end, {} at the most.\n",
            mebibytes(first),
            mebibytes(last),
            mebibytes(most)
        ));
    }
    for (at, from) in &seen.kills {
        let from = from.map_or_else(|| "nowhere".to_owned(), |from| from.to_string());
        parts.push(format!("Killed when {at} were rewritten; went on from {from}.\n"));
    }
    Ok(Outcome {
        tables: parts.join("\n"),
        failures: report.told(),
        missed,
        summary: format!(
            "{objects} objects rewritten in {}; {} requests meanwhile, {} failed; killed {} times",
            short(took),
            report.requests,
            report.failed,
            seen.kills.len()
        ),
    })
}

async fn store(bed: &Bed, objects: u32) -> anyhow::Result<()> {
    let path = format!("/apis/{}/v1/namespaces/{STORED}/widgets", sample::GROUP);
    stream::iter(0..objects)
        .map(|number| {
            let mut widget = sample::widget("v1");
            widget["metadata"]["name"] = format!("stored-{number}").into();
            let path = path.clone();
            async move { succeed(&bed.client, "POST", &path, Some(&widget)).await }
        })
        .buffer_unordered(CREATORS)
        .try_for_each(|_| async { Ok(()) })
        .await
}

/// Upgrades, and kills the operator as often as is asked for, at equal distances.
async fn upgrade(
    arguments: &Arguments,
    objects: u32,
    bed: &Bed,
    mut started: Started,
    seen: &Mutex<Seen>,
) -> anyhow::Result<Started> {
    let folder = sample::storing_newest(bed)?;
    set_source(&bed.client, "sample", &folder).await?;
    let limit = Instant::now() + arguments.duration.0.unsigned_abs();
    let mut kills = 0;
    loop {
        anyhow::ensure!(Instant::now() < limit, "not done within {}", arguments.duration);
        tokio::time::sleep(LOOK).await;
        seen.lock().memory.push(started.operator.memory()?);
        let path = format!("{BUNDLE_DEPLOYMENTS}/sample");
        let deployed = get(&bed.client, &path).await?.context("no BundleDeployment")?;
        let migration = &deployed["status"]["storageMigrations"][0];
        if migration.is_null() {
            if seen.lock().begun.is_none() || !is_stored_anew(bed).await? {
                continue;
            }
            seen.lock().ended.get_or_insert_with(Instant::now);
            if current(&deployed, "Ready", "True").is_some() {
                return Ok(started);
            }
            continue;
        }
        let number = |field: &str| migration[field].as_u64().unwrap_or_default();
        let rewritten = number("rewritten");
        {
            let mut seen = seen.lock();
            seen.progress = (rewritten, number("total"));
            if !migration["resourceVersion"].is_null() {
                seen.begun.get_or_insert_with(Instant::now);
            }
            if let Some((at, from)) = seen.kills.last_mut()
                && from.is_none()
                && rewritten != *at
            {
                *from = Some(rewritten);
            }
        }
        let next_kill = u64::from(objects) * u64::from(kills + 1) / u64::from(arguments.kills + 1);
        if kills < arguments.kills && rewritten >= next_kill {
            kills += 1;
            started = started.restart().await?;
            seen.lock().kills.push((rewritten, None));
        }
    }
}

async fn is_stored_anew(bed: &Bed) -> anyhow::Result<bool> {
    let crd = get(&bed.client, sample::DEFINITION).await?;
    Ok(crd.unwrap_or_default()["status"]["storedVersions"] == json!(["v2"]))
}

/// What is wrong with the objects.
async fn check(bed: &Bed, objects: u32) -> anyhow::Result<Vec<String>> {
    let mut problems = Vec::new();
    if !is_stored_anew(bed).await? {
        problems.push("the definition does not say that all objects are stored as v2".to_owned());
    }
    let example = sample::widget("v1");
    let (mut count, mut next) = (0, String::new());
    loop {
        let path = format!(
            "/apis/{}/v2/namespaces/{STORED}/widgets?limit={PAGE}&continue={next}",
            sample::GROUP
        );
        let page = succeed(&bed.client, "GET", &path, None).await?.body;
        for widget in page["items"].as_array().into_iter().flatten() {
            count += 1;
            let problem = sample::misconverted(&example, &with_version(widget, "v2"));
            problems.extend(problem.map(|problem| format!("{}: {problem}", widget["metadata"]["name"])));
        }
        next = page["metadata"]["continue"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if next.is_empty() {
            break;
        }
    }
    if count != objects {
        problems.push(format!("{count} of {objects} objects are there"));
    }
    problems.truncate(10);
    Ok(problems)
}

/// Items of a list need not say what they are.
fn with_version(widget: &Value, version: &str) -> Value {
    let mut widget = widget.clone();
    widget["apiVersion"] = format!("{}/{version}", sample::GROUP).into();
    widget
}
