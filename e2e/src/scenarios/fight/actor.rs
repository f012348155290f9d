//! Whoever puts another trust bundle into targets, and watches how long it stays.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use anyhow::Context;
use futures::future::try_join_all;
use kube::Client;
use serde_json::{Value, json};

use crate::{
    bed::Bed,
    load::Latencies,
    request::text,
    sample::{self, CERTIFICATE},
    steps::{PATIENCE, get, succeed},
};

/// The actor's field manager.
pub(super) const MANAGER: &str = "a-gitops-tool";

/// How often the actor looks whether its write was repaired: a fraction of what a repair may take.
const LOOK: Duration = Duration::from_millis(4);

/// An object, and every place of a CA bundle in it.
#[derive(Clone, Debug)]
pub(super) struct Target {
    path: String,
    pub(super) pointers: Vec<String>,
}

/// Writes one bundle into targets.
pub(super) struct Actor {
    client: Client,
    targets: Vec<Target>,
    bundle: String,
}

/// What came of a fight.
#[derive(Debug, Default)]
pub(super) struct Fight {
    /// How often the actor wrote a target.
    pub(super) writes: u64,
    /// How often somebody else wrote one.
    pub(super) repairs: u64,
    /// From each write to when it was seen to be repaired.
    pub(super) windows: Vec<(Instant, Instant)>,
    /// The phases of the rotation that were seen meanwhile.
    pub(super) phases: BTreeSet<String>,
}

// === impl Target ===

impl Target {
    /// The places in `object`, which is at `path`, where calls to the sample's Service are verified.
    pub(super) fn of(object: &Value, path: &str) -> Self {
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

// === impl Fight ===

impl Fight {
    /// How long each write stood.
    pub(super) fn latencies(&self) -> Latencies {
        let mut latencies = Latencies::default();
        for (written, repaired) in &self.windows {
            latencies.record(*repaired - *written);
        }
        latencies
    }
}

// === impl Actor ===

impl Actor {
    /// Writes `bundle`, in base64, into `targets`.
    pub(super) fn new(bed: &Bed, targets: Vec<Target>, bundle: String) -> Self {
        Self {
            client: bed.client.clone(),
            targets,
            bundle,
        }
    }

    /// Writes every target at each `beat`.
    pub(super) async fn write_for(&self, duration: Duration, beat: Duration) -> anyhow::Result<Fight> {
        let mut fight = Fight::default();
        let before = self.generations().await?;
        let started = Instant::now();
        let mut beats = tokio::time::interval(beat);
        while started.elapsed() < duration {
            beats.tick().await;
            fight.phases.insert(self.phase().await?);
            let windows = try_join_all(self.targets.iter().map(|target| self.write(target))).await?;
            fight.writes += windows.len() as u64;
            fight.windows.extend(windows);
        }
        let written = u64::try_from(self.generations().await? - before)?;
        fight.repairs = written.saturating_sub(fight.writes);
        Ok(fight)
    }

    /// Writes every target again as soon as it was repaired. How often.
    pub(super) async fn answer_for(&self, duration: Duration) -> anyhow::Result<u64> {
        let started = Instant::now();
        let mut answers = 0;
        while started.elapsed() < duration {
            try_join_all(self.targets.iter().map(|target| self.write(target))).await?;
            answers += self.targets.len() as u64;
        }
        Ok(answers)
    }

    /// How often the spec of a target was written.
    pub(super) async fn generation(&self, target: &Target) -> anyhow::Result<i64> {
        let object = get(&self.client, &target.path).await?.context("no such target")?;
        object["metadata"]["generation"].as_i64().context("no generation")
    }

    async fn generations(&self) -> anyhow::Result<i64> {
        let each = try_join_all(self.targets.iter().map(|target| self.generation(target))).await?;
        Ok(each.into_iter().sum())
    }

    /// Writes a target and waits until it is repaired. When that was sent, and when it was seen to be repaired.
    async fn write(&self, target: &Target) -> anyhow::Result<(Instant, Instant)> {
        let operations = target
            .pointers
            .iter()
            .map(|pointer| json!({"op": "add", "path": pointer, "value": self.bundle}));
        let patch = Value::Array(operations.collect());
        let path = format!("{}?fieldManager={MANAGER}", target.path);
        let sent = Instant::now();
        succeed(&self.client, "PATCH", &path, Some(&patch)).await?;
        loop {
            let object = get(&self.client, &target.path).await?.context("no such target")?;
            let is_repaired = |pointer: &String| {
                let carried = text(&object, pointer);
                !carried.is_empty() && carried != self.bundle
            };
            if target.pointers.iter().all(is_repaired) {
                return Ok((sent, Instant::now()));
            }
            anyhow::ensure!(
                sent.elapsed() < PATIENCE,
                "{} was not repaired within {PATIENCE:?}",
                target.path
            );
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn phase(&self) -> anyhow::Result<String> {
        let path = sample::SERVING_CERTIFICATE;
        let certificate = get(&self.client, path).await?.unwrap_or_default();
        Ok(text(&certificate, "/status/phase").to_owned())
    }
}
