use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// How long an API server may take to hear of a change.
const SETTLE: SignedDuration = SignedDuration::from_secs(10);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn crd(versions: &[(&str, bool, bool)], stored: &[&str]) -> Value {
    let versions: Vec<_> = versions
        .iter()
        .map(|(name, served, storage)| json!({"name": name, "served": served, "storage": storage}))
        .collect();
    json!({
        "metadata": {"name": "widgets.example.com", "uid": "u", "generation": 4, "resourceVersion": "90"},
        "spec": {"versions": versions}, "status": {"storedVersions": stored}
    })
}

fn moved() -> Value {
    crd(&[("v1", true, false), ("v2", true, true)], &["v1", "v2"])
}

fn begun(live: &Value, second: i64) -> Migration {
    match next(live, None, at(second), SETTLE) {
        Next::Begin(migration) => migration,
        other => panic!("{other:?}"),
    }
}

#[test]
fn only_the_definition_says_whether_there_is_anything_to_do() {
    let known = begun(&moved(), 0);
    for (live, expected) in [
        (crd(&[("v1", true, true)], &["v1"]), Next::Nothing),
        (
            crd(&[("v1", true, false), ("v2", true, true)], &["v2"]),
            Next::Nothing,
        ),
        (crd(&[("v1", true, true)], &[]), Next::Nothing),
        (crd(&[], &["v1"]), Next::Nothing),
        (
            crd(&[("v1", false, false), ("v2", false, true)], &["v1", "v2"]),
            Next::Serve,
        ),
    ] {
        assert_eq!(next(&live, None, at(0), SETTLE), expected, "{live}");
        assert_eq!(next(&live, Some(&known), at(0), SETTLE), expected, "{live}");
    }
}

#[test]
fn it_settles_then_marks_then_rewrites() {
    let live = moved();
    let mut migration = begun(&live, 100);
    assert_eq!(
        (migration.crd.as_str(), migration.version.as_str()),
        ("widgets.example.com", "v2")
    );
    for (second, expected) in [
        (100, Next::Wait(SETTLE)),
        (107, Next::Wait(SignedDuration::from_secs(3))),
        (110, Next::Mark),
    ] {
        assert_eq!(next(&live, Some(&migration), at(second), SETTLE), expected);
    }
    migration.mark("120", None);
    assert_eq!(next(&live, Some(&migration), at(110), SETTLE), Next::Rewrite);
}

#[test]
fn it_begins_anew_with_every_change_of_the_definition_and_when_the_clock_went_back() {
    let live = moved();
    let mut migration = begun(&live, 100);
    migration.mark("120", None);
    let with = |pointer: &str, value: Value| {
        let mut live = live.clone();
        *live.pointer_mut(pointer).unwrap() = value;
        live
    };
    let back = crd(&[("v1", true, true), ("v2", true, false)], &["v1", "v2"]);
    for other in [
        with("/metadata/generation", json!(5)),
        with("/metadata/uid", json!("other")),
        back,
    ] {
        let next = next(&other, Some(&migration), at(200), SETTLE);
        assert!(matches!(next, Next::Begin(_)), "{next:?}");
    }
    assert!(matches!(
        next(&live, Some(&migration), at(99), SETTLE),
        Next::Begin(_)
    ));
    let status = with("/metadata/resourceVersion", json!("91"));
    assert_eq!(next(&status, Some(&migration), at(200), SETTLE), Next::Rewrite);
}

#[test]
fn what_was_written_after_the_mark_is_left_alone() {
    let mut migration = begun(&moved(), 0);
    assert!(migration.must_rewrite("7"));
    migration.mark("99", None);
    for (written, expected) in [
        ("98", true),
        ("99", true),
        ("100", false),
        ("1000", false),
        ("", true),
        ("x", true),
    ] {
        assert_eq!(migration.must_rewrite(written), expected, "{written}");
    }
    migration.mark("opaque", None);
    assert!(migration.must_rewrite("100"));
}

#[test]
fn pages_are_counted() {
    let mut migration = begun(&moved(), 0);
    migration.turn_page(200, Some(50), Some("a".to_owned()));
    assert_eq!(
        migration.to_string(),
        "200 of 250 objects of widgets.example.com are stored as v2"
    );
    migration.turn_page(200, None, Some("b".to_owned()));
    assert_eq!((migration.rewritten, migration.total), (400, Some(250)));
    migration.find_page(Some("c".to_owned()));
    assert_eq!(
        (migration.rewritten, migration.next_page.as_deref()),
        (400, Some("c"))
    );
    migration.turn_page(3, None, None);
    assert_eq!((migration.rewritten, migration.total), (403, Some(403)));
    migration.find_page(None);
    assert_eq!((migration.rewritten, migration.next_page), (0, None));
}

#[test]
fn the_reduction_fits_one_state_of_the_definition() {
    assert_eq!(
        reduction(&moved()),
        json!({"metadata": {"resourceVersion": "90"}, "status": {"storedVersions": ["v2"]}})
    );
}

/// A cluster with one definition, its objects, and API servers of which one may not have heard of the last change.
#[derive(Clone, Debug)]
struct World {
    /// The versions of the definition.
    versions: Vec<&'static str>,
    storage: &'static str,
    stored: Vec<&'static str>,
    generation: i64,
    resource_version: u64,
    /// In the order in which they are listed, each with the version that it is stored in, and its resourceVersion.
    objects: BTreeMap<usize, (&'static str, u64)>,
    now: i64,
    /// The storage version before, and when it was one.
    before: (&'static str, i64),
    status: Option<Migration>,
    settle: SignedDuration,
}

/// What happens.
#[derive(Clone, Copy, Debug)]
enum Event {
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
    /// The definition is changed in some other way.
    Touch,
    Pass {
        seconds: i64,
    },
    /// Unstored versions are taken out of the definition.
    Drop,
    /// The API server forgets where the next page begins.
    Expire {
        entirely: bool,
    },
}

const VERSIONS: [&str; 3] = ["v1", "v2", "v3"];

/// How many objects a page has.
const PAGE: usize = 2;

// === impl World ===

impl World {
    fn new(settle: SignedDuration) -> Self {
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
            "spec": {"versions": versions}, "status": {"storedVersions": self.stored},
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

    fn happen(&mut self, event: Event) {
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
            Event::Touch => self.generation += 1,
            Event::Pass { seconds } => self.now += seconds,
            Event::Drop => {
                let (stored, count) = (self.stored.clone(), self.versions.len());
                self.versions.retain(|version| stored.contains(version));
                self.generation += i64::from(self.versions.len() != count);
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
        self.generation += 1;
        self.tick();
        if !self.stored.contains(&version) {
            self.stored.push(version);
        }
    }

    /// What the operator does in one reconciliation.
    fn step(&mut self, writes: usize, reports: bool) {
        let live = self.live();
        let mut status = self.status.clone();
        let mut survives = true;
        match (
            next(&live, status.as_ref(), at(self.now), self.settle),
            &mut status,
        ) {
            (Next::Nothing, _) => status = None,
            (Next::Begin(migration), _) => status = Some(migration),
            (Next::Mark, Some(migration)) => migration.mark(&self.resource_version.to_string(), None),
            (Next::Rewrite, Some(migration)) => {
                survives = self.turn_page(migration, writes);
            }
            _ => {}
        }
        if reports && survives {
            self.status = status;
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

    /// Objects that are stored in a version that the definition does not name.
    fn undeclared(&self) -> Vec<&(&'static str, u64)> {
        let declared = |version| self.stored.contains(version) && self.versions.contains(version);
        self.objects
            .values()
            .filter(|(version, _)| !declared(version))
            .collect()
    }
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let object = 0..12_usize;
    let event = prop_oneof![
        8 => (0..4_usize, prop::bool::weighted(0.8)).prop_map(|(writes, reports)| Event::Step { writes, reports }),
        2 => (object.clone(), any::<bool>()).prop_map(|(object, lagging)| Event::Write { object, lagging }),
        1 => (object.clone(), any::<bool>()).prop_map(|(object, lagging)| Event::Create { object, lagging }),
        1 => object.prop_map(|object| Event::Delete { object }),
        1 => (0..3_usize).prop_map(|version| Event::Move { version }),
        1 => Just(Event::Touch),
        4 => (1..12_i64).prop_map(|seconds| Event::Pass { seconds }),
        1 => Just(Event::Drop),
        1 => any::<bool>().prop_map(|entirely| Event::Expire { entirely }),
    ];
    prop::collection::vec(event, 0..80)
}

proptest! {
    #[test]
    fn no_object_is_ever_stored_in_a_version_that_is_not_declared(events in events()) {
        let mut world = World::new(SETTLE);
        for event in events {
            world.happen(event);
            prop_assert!(world.undeclared().is_empty(), "after {event:?}: {world:?}");
        }
    }

    #[test]
    fn left_alone_it_ends_with_one_stored_version(events in events()) {
        let mut world = World::new(SETTLE);
        for event in events {
            world.happen(event);
        }
        for _ in 0..80 {
            world.happen(Event::Step { writes: usize::MAX, reports: true });
            world.happen(Event::Pass { seconds: 1 });
        }
        prop_assert_eq!(&world.stored, &[world.storage]);
        prop_assert_eq!(&world.status, &None);
        prop_assert!(world.objects.values().all(|(version, _)| *version == world.storage), "{world:?}");
    }

    #[test]
    fn one_write_in_each_life_is_enough(lost in prop::collection::vec(any::<bool>(), 0..20)) {
        let mut world = World::new(SETTLE);
        world.happen(Event::Move { version: 1 });
        let lives = lost.into_iter().chain(std::iter::repeat_n(false, 60));
        for lost in lives {
            // A life ends with its first write, if that is an object's; or else with its report.
            world.happen(Event::Step { writes: 1, reports: !lost });
            world.happen(Event::Pass { seconds: 1 });
        }
        prop_assert_eq!(&world.stored, &["v2"]);
    }
}

#[test]
fn without_settling_an_object_would_be_lost() {
    let mut world = World::new(SignedDuration::ZERO);
    world.happen(Event::Move { version: 1 });
    for _ in 0..2 {
        world.happen(Event::Step {
            writes: 9,
            reports: true,
        });
    }
    world.happen(Event::Create {
        object: 1,
        lagging: true,
    });
    for _ in 0..9 {
        world.happen(Event::Step {
            writes: 9,
            reports: true,
        });
    }
    assert!(
        !world.undeclared().is_empty(),
        "the model does not find it: {world:?}"
    );
}

#[test]
fn without_the_generation_an_object_would_be_lost() {
    let mut world = World::new(SETTLE);
    world.happen(Event::Move { version: 1 });
    for _ in 0..3 {
        world.happen(Event::Step {
            writes: 9,
            reports: true,
        });
        world.happen(Event::Pass { seconds: 10 });
    }
    // Its first object is done; now that one is written in the version before, while that is stored again.
    world.happen(Event::Move { version: 0 });
    world.happen(Event::Write {
        object: 0,
        lagging: false,
    });
    world.happen(Event::Pass { seconds: 10 });
    world.happen(Event::Move { version: 1 });
    let mut blind = world.clone();
    if let Some(migration) = &mut blind.status {
        migration.generation = blind.generation;
    }
    for world in [&mut world, &mut blind] {
        for _ in 0..20 {
            world.happen(Event::Step {
                writes: 9,
                reports: true,
            });
            world.happen(Event::Pass { seconds: 1 });
        }
    }
    assert!(world.undeclared().is_empty());
    assert!(
        !blind.undeclared().is_empty(),
        "the model does not find it: {blind:?}"
    );
}
