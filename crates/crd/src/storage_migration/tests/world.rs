//! What can happen to a CRD and its objects while they are rewritten.

use std::collections::{BTreeMap, VecDeque};

use jiff::SignedDuration;
use serde_json::{Value, json};
use windlass_object::object;

use super::*;

/// A cluster with one CRD, its objects, and API servers of which one may not have heard of the last change.
#[derive(Clone, Debug)]
pub(super) struct World {
    /// The versions of the CRD.
    versions: Vec<&'static str>,
    pub(super) storage: &'static str,
    pub(super) stored: Vec<&'static str>,
    pub(super) generation: i64,
    resource_version: u64,
    /// In the order in which they are listed, each with the version that it is stored in, and its resourceVersion.
    pub(super) objects: BTreeMap<usize, (&'static str, u64)>,
    now: i64,
    /// The storage version before, and when it was one.
    before: (&'static str, i64),
    pub(super) status: Option<Migration>,
    settle: SignedDuration,
    /// The CA that the conversion trusts.
    trust: u64,
    /// Who converts.
    converter: &'static str,
    /// What the operator's watch has shown, and what it has still to show.
    shown: Option<StorageVersionHistory>,
    unseen: VecDeque<StorageVersionHistory>,
    /// An object was rewritten through the wrong conversion.
    pub(super) spoiled: bool,
}

/// What happens.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The operator goes a step on; how many of its writes are carried out before it crashes, and whether the status is
    /// written.
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
    /// The storage version moves.
    Move {
        version: usize,
    },
    /// The conversion gets another CA.
    Trust,
    /// Another converts, or the one that should.
    Convert {
        ours: bool,
    },
    /// The watch shows so many changes of the CRD.
    Watch {
        changes: usize,
    },
    /// The watch begins anew, and shows the CRD as it is.
    Relist,
    /// The operator is started again.
    Restart,
    Pass {
        seconds: i64,
    },
    /// Unstored versions are taken out of the CRD.
    Drop,
    /// The API server forgets where the next page begins.
    Expire {
        entirely: bool,
    },
}

const VERSIONS: [&str; 3] = ["v1", "v2", "v3"];

/// How many objects a page has.
const PAGE: usize = 2;

/// Who should convert.
const OURS: &str = "https://ours";

// === impl World ===

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
            spoiled: false,
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

    /// The version that an API server stores.
    fn stores(&self, lagging: bool) -> &'static str {
        let (before, until) = self.before;
        let lags = lagging && self.now < until + SETTLE.as_secs();
        if lags { before } else { self.storage }
    }

    pub(super) fn happen(&mut self, event: Event) {
        match event {
            Event::Step { writes, reports } => self.step(writes, reports),
            Event::Write { object, lagging } => {
                let version = self.stores(lagging);
                let written = self.tick();
                if let Some(object) = self.objects.get_mut(&object) {
                    *object = (version, written);
                }
            }
            Event::Create { object, lagging } => {
                let created = (self.stores(lagging), self.tick());
                self.objects.entry(object).or_insert(created);
            }
            Event::Delete { object } => drop(self.objects.remove(&object)),
            Event::Move { version } => self.move_storage(VERSIONS[version]),
            Event::Trust => {
                self.trust += 1;
                self.note_change();
            }
            Event::Convert { ours } => {
                let converter = if ours { OURS } else { "https://theirs" };
                if self.converter != converter {
                    self.converter = converter;
                    self.note_change();
                }
            }
            Event::Watch { changes } => {
                for seen in self.unseen.drain(..changes.min(self.unseen.len())) {
                    see(&mut self.shown, seen);
                }
            }
            Event::Relist => {
                self.unseen.clear();
                if let Some(seen) = StorageVersionHistory::from_crd(&self.live()) {
                    see(&mut self.shown, seen);
                }
            }
            Event::Restart => self.restart(),
            Event::Pass { seconds } => self.now += seconds,
            Event::Drop => {
                let (stored, count) = (self.stored.clone(), self.versions.len());
                self.versions.retain(|version| stored.contains(version));
                if self.versions.len() != count {
                    self.note_change();
                }
            }
            Event::Expire { entirely } => {
                if let Some(migration) = &mut self.status {
                    let next_page = migration.next_page.clone().filter(|_| !entirely);
                    migration.find_page(next_page);
                }
            }
        }
    }

    /// As the API server does it: no two moves within the time that API servers may lag.
    fn move_storage(&mut self, version: &'static str) {
        let (_, last) = self.before;
        let may_move = self.versions.contains(&version) && self.now >= last + SETTLE.as_secs();
        if version == self.storage || !may_move {
            return;
        }
        self.before = (self.storage, self.now);
        self.storage = version;
        self.note_change();
        self.tick();
        if !self.stored.contains(&version) {
            self.stored.push(version);
        }
    }

    fn note_change(&mut self) {
        self.generation += 1;
        self.unseen.extend(StorageVersionHistory::from_crd(&self.live()));
    }

    /// Everything is forgotten but the status; the watch shows what there is.
    fn restart(&mut self) {
        self.unseen.clear();
        self.shown = StorageVersionHistory::from_crd(&self.live());
    }

    /// What the operator does in one reconciliation.
    fn step(&mut self, writes: usize, reports: bool) {
        let live = self.live();
        let mut status = self.status.clone();
        if let Some(known) = &mut status {
            known.follow(self.shown.iter().chain(&StorageVersionHistory::from_crd(&live)));
        }
        let is_behind = status.as_ref().is_some_and(|known| known.is_behind(&live));
        let lags = is_behind && !self.shown.as_ref().is_some_and(|shown| shown.reaches(&live));
        let now = at(self.now);
        let mut survives = true;
        match (
            next(&live, status.as_ref(), Some(OURS), now, self.settle),
            &mut status,
        ) {
            (MigrationStep::Nothing, _) => status = None,
            (MigrationStep::Begin(_), Some(_)) if lags => {}
            (MigrationStep::Begin(migration), _) => status = Some(migration),
            (MigrationStep::Mark, Some(migration)) => {
                migration.mark(&self.resource_version.to_string(), None);
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

    /// Rewrites a page; `false` when it crashed.
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
                self.spoiled |= self.converter != OURS;
                let rewritten = (self.storage, self.tick());
                self.objects.insert(*object, rewritten);
            }
        }
        let next_page = rest.first().map(usize::to_string);
        let is_last = next_page.is_none();
        migration.turn_page(listed.len() as u64, Some(rest.len() as u64), next_page);
        if is_last && writes == 0 {
            return false;
        }
        if is_last && migration.is_about(&self.live()) {
            let reduced = reduction(&self.live());
            let kept = object::items(&reduced, "/status/storedVersions").to_vec();
            self.stored.retain(|version| kept.contains(&json!(version)));
            self.tick();
        }
        true
    }

    /// Objects that are stored in a version that the CRD does not name.
    pub(super) fn undeclared(&self) -> Vec<&(&'static str, u64)> {
        let declared = |version| self.stored.contains(version) && self.versions.contains(version);
        self.objects
            .values()
            .filter(|(version, _)| !declared(version))
            .collect()
    }
}

fn see(shown: &mut Option<StorageVersionHistory>, seen: StorageVersionHistory) {
    match shown {
        Some(shown) => shown.record(seen),
        None => *shown = Some(seen),
    }
}
