//! Simulates what can happen to a CRD and its objects during a migration.

use std::collections::{BTreeMap, VecDeque};

use jiff::SignedDuration;
use serde_json::{Value, json};
use windlass_object::object;

use super::*;

/// A cluster with one CRD, its objects, and API servers, one of which may not have observed the last change.
#[derive(Clone, Debug)]
pub(super) struct World {
    /// The versions of the CRD.
    versions: Vec<&'static str>,
    pub(super) storage: &'static str,
    pub(super) stored: Vec<&'static str>,
    pub(super) generation: i64,
    resource_version: u64,
    /// Objects in list order, with the version in which each is stored and its resourceVersion.
    pub(super) objects: BTreeMap<usize, (&'static str, u64)>,
    now: i64,
    /// The previous storage version, and when it was replaced.
    before: (&'static str, i64),
    pub(super) status: Option<Migration>,
    settle: SignedDuration,
    /// The CA bundle of the conversion.
    trust: u64,
    converter: &'static str,
    /// What the operator's watch has delivered, and what is pending.
    shown: Option<StorageVersionHistory>,
    unseen: VecDeque<StorageVersionHistory>,
    /// Whether an object was rewritten through the wrong converter.
    pub(super) used_wrong_converter: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The operator makes progress and crashes after this many writes; `reports` says whether it still wrote
    /// the status.
    Step {
        writes: usize,
        reports: bool,
    },
    /// A client writes an object, through an API server that may lag.
    Write {
        object: usize,
        lagging: bool,
    },
    /// A client creates an object.
    Create {
        object: usize,
        lagging: bool,
    },
    Delete {
        object: usize,
    },
    /// The storage version changes.
    Move {
        version: usize,
    },
    /// The conversion gets another CA bundle.
    Trust,
    /// Another webhook becomes the converter, or the right one again.
    Convert {
        ours: bool,
    },
    /// The watch delivers this many changes of the CRD.
    Watch {
        changes: usize,
    },
    /// The watch restarts and delivers the present CRD.
    Relist,
    /// The operator restarts.
    Restart,
    Pass {
        seconds: i64,
    },
    /// Unstored versions are removed from the CRD.
    Drop,
    /// The continue token expires.
    Expire {
        entirely: bool,
    },
}

const VERSIONS: [&str; 3] = ["v1", "v2", "v3"];

/// How many objects a page has.
const PAGE: usize = 2;

/// The desired converter.
const OURS: &str = "https://ours";

impl World {
    pub(super) fn new(settle: SignedDuration) -> Self {
        Self {
            versions: VERSIONS.to_vec(),
            storage: "v1",
            stored: vec!["v1"],
            generation: 1,
            resource_version: 10,
            objects: (0..10).step_by(2).map(|object| (object, ("v1", 1))).collect(),
            now: 1_000,
            before: ("v1", 0),
            status: None,
            settle,
            trust: 1,
            converter: OURS,
            shown: None,
            unseen: VecDeque::new(),
            used_wrong_converter: false,
        }
    }

    fn live(&self) -> Value {
        let versions: Vec<_> = self
            .versions
            .iter()
            .map(|name| json!({"name": name, "served": true, "storage": *name == self.storage}))
            .collect();
        json!({
            "metadata": {"name": "widgets.example.com", "uid": "u", "generation": self.generation,
                "resourceVersion": self.resource_version.to_string()},
            "spec": {
                "versions": versions,
                "conversion": {"strategy": "Webhook",
                    "webhook": {"clientConfig": {"url": self.converter, "caBundle": self.trust.to_string()}}},
            },
            "status": {"storedVersions": self.stored},
        })
    }

    fn tick(&mut self) -> u64 {
        self.resource_version += 1;
        self.resource_version
    }

    /// Returns the version in which an API server stores objects.
    fn stored_version(&self, lagging: bool) -> &'static str {
        let (before, until) = self.before;
        let lags = lagging && self.now < until + SETTLE.as_secs();
        if lags { before } else { self.storage }
    }

    pub(super) fn apply(&mut self, event: Event) {
        match event {
            Event::Step { writes, reports } => self.step(writes, reports),
            Event::Write { object, lagging } => {
                let version = self.stored_version(lagging);
                let written = self.tick();
                if let Some(object) = self.objects.get_mut(&object) {
                    *object = (version, written);
                }
            }
            Event::Create { object, lagging } => {
                let created = (self.stored_version(lagging), self.tick());
                self.objects.entry(object).or_insert(created);
            }
            Event::Delete { object } => drop(self.objects.remove(&object)),
            Event::Move { version } => self.move_storage(VERSIONS[version]),
            Event::Trust => {
                self.trust += 1;
                self.record_change();
            }
            Event::Convert { ours } => {
                let converter = if ours { OURS } else { "https://theirs" };
                if self.converter != converter {
                    self.converter = converter;
                    self.record_change();
                }
            }
            Event::Watch { changes } => {
                for seen in self.unseen.drain(..changes.min(self.unseen.len())) {
                    observe(&mut self.shown, seen);
                }
            }
            Event::Relist => {
                self.unseen.clear();
                if let Some(seen) = StorageVersionHistory::from_crd(&self.live()) {
                    observe(&mut self.shown, seen);
                }
            }
            Event::Restart => self.restart(),
            Event::Pass { seconds } => self.now += seconds,
            Event::Drop => {
                let (stored, count) = (self.stored.clone(), self.versions.len());
                self.versions.retain(|version| stored.contains(version));
                if self.versions.len() != count {
                    self.record_change();
                }
            }
            Event::Expire { entirely } => {
                if let Some(migration) = &mut self.status {
                    let next_page = migration.next_page.clone().filter(|_| !entirely);
                    migration.set_next_page(next_page);
                }
            }
        }
    }

    /// As in the API server: at most one change within the time that API servers may lag.
    fn move_storage(&mut self, version: &'static str) {
        let (_, last) = self.before;
        let may_move = self.versions.contains(&version) && self.now >= last + SETTLE.as_secs();
        if version == self.storage || !may_move {
            return;
        }
        self.before = (self.storage, self.now);
        self.storage = version;
        self.record_change();
        self.tick();
        if !self.stored.contains(&version) {
            self.stored.push(version);
        }
    }

    fn record_change(&mut self) {
        self.generation += 1;
        self.unseen.extend(StorageVersionHistory::from_crd(&self.live()));
    }

    /// Loses everything but the status; the watch delivers the present state.
    fn restart(&mut self) {
        self.unseen.clear();
        self.shown = StorageVersionHistory::from_crd(&self.live());
    }

    /// Reconciles once.
    fn step(&mut self, writes: usize, reports: bool) {
        let live = self.live();
        let mut status = self.status.clone();
        if let Some(known) = &mut status {
            known.record_histories(self.shown.iter().chain(&StorageVersionHistory::from_crd(&live)));
        }
        let may_continue = status.as_ref().is_some_and(|known| known.may_continue(&live));
        let lags = may_continue && !self.shown.as_ref().is_some_and(|shown| shown.reaches(&live));
        let now = at(self.now);
        let mut survives = true;
        match (
            next_step(&live, status.as_ref(), Some(OURS), now, self.settle),
            &mut status,
        ) {
            (MigrationStep::Nothing, _) => status = None,
            (MigrationStep::Begin(_), Some(_)) if lags => {}
            (MigrationStep::Begin(migration), _) => status = Some(migration),
            (MigrationStep::Mark, Some(migration)) => {
                migration.record_mark(&self.resource_version.to_string(), None);
            }
            (MigrationStep::Rewrite, Some(migration)) => {
                survives = self.turn_page(migration, writes);
            }
            _ => {}
        }
        if reports && survives {
            self.status = status;
        } else {
            self.restart();
        }
    }

    /// Rewrites a page; returns `false` if the operator crashed.
    fn turn_page(&mut self, migration: &mut Migration, mut writes: usize) -> bool {
        let next_page = migration.next_page.as_deref();
        let start: usize = next_page.map_or(0, |page| page.parse().unwrap());
        let mut listed: Vec<usize> = self.objects.range(start..).map(|(object, _)| *object).collect();
        let rest = listed.split_off(PAGE.min(listed.len()));
        for object in &listed {
            let (version, written) = self.objects[object];
            if !migration.must_rewrite(&written.to_string()) {
                continue;
            }
            if writes == 0 {
                return false;
            }
            writes -= 1;
            if version != self.storage {
                self.used_wrong_converter |= self.converter != OURS;
                let rewritten = (self.storage, self.tick());
                self.objects.insert(*object, rewritten);
            }
        }
        let next_page = rest.first().map(usize::to_string);
        let is_last = next_page.is_none();
        migration.finish_page(listed.len() as u64, Some(rest.len() as u64), next_page);
        if is_last && writes == 0 {
            return false;
        }
        if is_last && migration.can_continue(&self.live()) {
            let reduced = stored_versions_patch(&self.live());
            let kept = object::items(&reduced, "/status/storedVersions").to_vec();
            self.stored.retain(|version| kept.contains(&json!(version)));
            self.tick();
        }
        true
    }

    /// Returns objects that are stored in a version that the CRD does not have.
    pub(super) fn undeclared_objects(&self) -> Vec<&(&'static str, u64)> {
        let declared = |version| self.stored.contains(version) && self.versions.contains(version);
        self.objects
            .values()
            .filter(|(version, _)| !declared(version))
            .collect()
    }
}

fn observe(shown: &mut Option<StorageVersionHistory>, seen: StorageVersionHistory) {
    match shown {
        Some(shown) => shown.record(seen),
        None => *shown = Some(seen),
    }
}
