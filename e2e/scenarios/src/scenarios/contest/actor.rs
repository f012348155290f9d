//! An actor that writes another trust bundle into targets, and measures the time until it is repaired.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use anyhow::Context;
use futures::{StreamExt, future::try_join_all};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
    runtime::{WatchStreamExt, watcher},
};
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinSet};

use crate::{
    load::Latencies,
    request::{text, version_number},
    sample::{self, CERTIFICATE},
    steps::{PATIENCE, get, succeed},
    test_cluster::TestCluster,
};

/// The actor's field manager.
pub(super) const MANAGER: &str = "a-gitops-tool";

const VERSION: &str = "/metadata/resourceVersion";

/// An object, and the pointers to its CA bundles.
#[derive(Clone, Debug)]
pub(super) struct ContestedObject {
    path: String,
    pub(super) pointers: Vec<String>,
}

/// Writes one bundle into targets.
pub(super) struct Actor {
    client: Client,
    targets: Vec<ContestedObject>,
    bundle: String,
    /// The current targets by path; a watch sends fewer requests than polling.
    seen: BTreeMap<String, watch::Receiver<Value>>,
    _watches: JoinSet<()>,
}

/// The result of a fight.
#[derive(Debug, Default)]
pub(super) struct Fight {
    /// The number of writes by the actor.
    pub(super) writes: u64,
    /// The number of writes by others.
    pub(super) repairs: u64,
    /// The time of each write, and the time when the repair was observed.
    pub(super) windows: Vec<(Instant, Instant)>,
    /// The observed phases of the rotation.
    pub(super) phases: BTreeSet<String>,
}

impl ContestedObject {
    /// Finds the CA bundles in `object`, at `path`, that verify calls of the sample's Service.
    pub(super) fn from_object(object: &Value, path: &str) -> Self {
        let mut pointers = Vec::new();
        let mut add = |pointer: String| {
            if object.pointer(&format!("{pointer}/service/name")) == Some(&json!(CERTIFICATE)) {
                pointers.push(format!("{pointer}/caBundle"));
            }
        };
        add("/spec/conversion/webhook/clientConfig".to_owned());
        for index in 0..object["webhooks"].as_array().map_or(0, Vec::len) {
            add(format!("/webhooks/{index}/clientConfig"));
        }
        Self {
            path: path.to_owned(),
            pointers,
        }
    }
}

impl Fight {
    /// Returns the time until each repair.
    pub(super) fn latencies(&self) -> Latencies {
        let mut latencies = Latencies::default();
        for (written, repaired) in &self.windows {
            latencies.record(*repaired - *written);
        }
        latencies
    }
}

impl Actor {
    /// Creates an actor that writes `bundle`, in base64, into `targets`.
    pub(super) fn new(cluster: &TestCluster, targets: Vec<ContestedObject>, bundle: String) -> Self {
        let mut watches = JoinSet::new();
        let seen = targets.iter().map(|target| {
            let (sender, receiver) = watch::channel(Value::Null);
            watches.spawn(follow(cluster.client.clone(), target.path.clone(), sender));
            (target.path.clone(), receiver)
        });
        Self {
            client: cluster.client.clone(),
            seen: seen.collect(),
            targets,
            bundle,
            _watches: watches,
        }
    }

    /// Writes every target once per `beat`, one after the other, as tools do.
    pub(super) async fn write_for(&self, duration: Duration, beat: Duration) -> anyhow::Result<Fight> {
        let mut fight = Fight::default();
        let before = self.generations().await?;
        let started = Instant::now();
        let mut beats = tokio::time::interval(beat);
        let step = beat / u32::try_from(self.targets.len())?;
        while started.elapsed() < duration {
            beats.tick().await;
            fight.phases.insert(self.phase().await?);
            let writes = (0..).zip(&self.targets).map(async |(place, target)| {
                tokio::time::sleep(step * place).await;
                self.write(target).await
            });
            let windows = try_join_all(writes).await?;
            fight.writes += windows.len() as u64;
            fight.windows.extend(windows);
        }
        let written = u64::try_from(self.generations().await? - before)?;
        fight.repairs = written.saturating_sub(fight.writes);
        Ok(fight)
    }

    /// Writes every target again as soon as it is repaired, and returns the number of writes.
    pub(super) async fn revert_for(&self, duration: Duration) -> anyhow::Result<u64> {
        let started = Instant::now();
        let mut answers = 0;
        while started.elapsed() < duration {
            try_join_all(self.targets.iter().map(|target| self.write(target))).await?;
            answers += self.targets.len() as u64;
        }
        Ok(answers)
    }

    /// Returns the generation of a target: the number of writes of its spec.
    pub(super) async fn generation(&self, target: &ContestedObject) -> anyhow::Result<i64> {
        let object = get(&self.client, &target.path).await?.context("no such target")?;
        object["metadata"]["generation"].as_i64().context("no generation")
    }

    async fn generations(&self) -> anyhow::Result<i64> {
        let each = try_join_all(self.targets.iter().map(|target| self.generation(target))).await?;
        Ok(each.into_iter().sum())
    }

    /// Writes a target and waits until it is repaired. Returns the time of the request, and the time when the
    /// repair was observed.
    async fn write(&self, target: &ContestedObject) -> anyhow::Result<(Instant, Instant)> {
        let operations = target
            .pointers
            .iter()
            .map(|pointer| json!({"op": "add", "path": pointer, "value": self.bundle}));
        let patch = Value::Array(operations.collect());
        let path = format!("{}?fieldManager={MANAGER}", target.path);
        let mut seen = self.seen.get(&target.path).context("not watched")?.clone();
        let sent = Instant::now();
        let written = succeed(&self.client, "PATCH", &path, Some(&patch)).await?.body;
        let written = version_number(text(&written, VERSION));
        let is_repaired = |object: &Value| {
            let is_ours = |pointer: &String| {
                let carried = text(object, pointer);
                !carried.is_empty() && carried != self.bundle
            };
            version_number(text(object, VERSION)) > written && target.pointers.iter().all(is_ours)
        };
        let repaired = tokio::time::timeout(PATIENCE, seen.wait_for(is_repaired)).await;
        repaired
            .with_context(|| format!("{} was not repaired within {PATIENCE:?}", target.path))?
            .context("the watch has terminated")?;
        Ok((sent, Instant::now()))
    }

    async fn phase(&self) -> anyhow::Result<String> {
        let path = sample::SERVING_CERTIFICATE;
        let certificate = get(&self.client, path).await?.unwrap_or_default();
        Ok(text(&certificate, "/status/phase").to_owned())
    }
}

/// Sends the current object at `path` to `sender`.
async fn follow(client: Client, path: String, sender: watch::Sender<Value>) {
    let [_, _, group, version, plural, name] = path.split('/').collect::<Vec<_>>()[..] else {
        return;
    };
    let resource = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: format!("{group}/{version}"),
        kind: String::new(),
        plural: plural.to_owned(),
    };
    let api = Api::<DynamicObject>::all_with(client, &resource);
    let objects = watcher::watch_object(api, name).default_backoff();
    let mut objects = std::pin::pin!(objects);
    while let Some(object) = objects.next().await {
        match object.map(serde_json::to_value) {
            Ok(Ok(object)) => sender.send_modify(|seen| *seen = object),
            Ok(Err(error)) => tracing::warn!(%error, path, "Cannot convert a watched object"),
            Err(error) => tracing::warn!(%error, path, "The watch was interrupted"),
        }
    }
}
