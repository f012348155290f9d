//! In any sequence of events, no object is stored in a version that may be removed.

use jiff::SignedDuration;
use proptest::prelude::*;

use super::{
    world::{Event, World},
    *,
};

fn events() -> impl Strategy<Value = Vec<Event>> {
    let object = 0..12_usize;
    let event = prop_oneof![
        8 => (0..4_usize, prop::bool::weighted(0.8)).prop_map(|(writes, reports)| Event::Step { writes, reports }),
        2 => (object.clone(), any::<bool>()).prop_map(|(object, lagging)| Event::Write { object, lagging }),
        1 => (object.clone(), any::<bool>()).prop_map(|(object, lagging)| Event::Create { object, lagging }),
        1 => object.prop_map(|object| Event::Delete { object }),
        1 => (0..3_usize).prop_map(|version| Event::Move { version }),
        2 => Just(Event::Trust),
        1 => any::<bool>().prop_map(|ours| Event::Convert { ours }),
        4 => (1..4_usize).prop_map(|changes| Event::Watch { changes }),
        1 => Just(Event::Relist),
        1 => Just(Event::Restart),
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
            world.apply(event);
            prop_assert!(world.undeclared_objects().is_empty(), "after {event:?}: {world:?}");
            prop_assert!(!world.used_wrong_converter, "after {event:?}: {world:?}");
        }
    }

    #[test]
    fn without_disturbance_it_ends_with_one_stored_version(events in events()) {
        let mut world = World::new(SETTLE);
        for event in events {
            world.apply(event);
        }
        world.apply(Event::Convert { ours: true });
        for _ in 0..80 {
            world.apply(Event::Step { writes: usize::MAX, reports: true });
            world.apply(Event::Watch { changes: usize::MAX });
            world.apply(Event::Pass { seconds: 1 });
        }
        prop_assert_eq!(&world.stored, &[world.storage]);
        prop_assert_eq!(&world.status, &None);
        prop_assert!(world.objects.values().all(|(version, _)| *version == world.storage), "{world:?}");
    }

    #[test]
    fn ca_rotations_never_restart_the_migration(rotations in prop::collection::vec((0..4_usize, any::<bool>()), 0..60)) {
        let mut world = World::new(SETTLE);
        world.apply(Event::Move { version: 1 });
        let mut known: Option<Migration> = None;
        let quiet = std::iter::repeat_n((0, false), 40);
        for (rotations, restarts) in rotations.into_iter().chain(quiet) {
            // A stopped operator does not rotate, so a restarted one has missed at most one change.
            let missed = if restarts { rotations.min(1) } else { rotations };
            for _ in 0..missed {
                world.apply(Event::Trust);
            }
            if restarts {
                world.apply(Event::Restart);
            }
            // The operator reconciles again once the watch has caught up.
            for _ in 0..2 {
                world.apply(Event::Step { writes: usize::MAX, reports: true });
                world.apply(Event::Watch { changes: usize::MAX });
            }
            world.apply(Event::Pass { seconds: 1 });
            if let (Some(before), Some(after)) = (&known, &world.status) {
                prop_assert_eq!(before.since.0, after.since.0);
                prop_assert!(before.rewritten <= after.rewritten, "{before} became {after}");
            }
            known.clone_from(&world.status);
        }
        prop_assert_eq!(&world.stored, &["v2"]);
    }

    #[test]
    fn one_write_per_process_is_enough_progress(lost in prop::collection::vec(any::<bool>(), 0..20)) {
        let mut world = World::new(SETTLE);
        world.apply(Event::Move { version: 1 });
        let lives = lost.into_iter().chain(std::iter::repeat_n(false, 60));
        for lost in lives {
            // The process ends after its first write: that of an object, or else its status report.
            world.apply(Event::Step { writes: 1, reports: !lost });
            world.apply(Event::Pass { seconds: 1 });
        }
        prop_assert_eq!(&world.stored, &["v2"]);
    }
}

#[test]
fn without_the_settle_wait_an_object_would_be_lost() {
    let mut world = World::new(SignedDuration::ZERO);
    world.apply(Event::Move { version: 1 });
    for _ in 0..2 {
        world.apply(Event::Step {
            writes: 9,
            reports: true,
        });
    }
    world.apply(Event::Create {
        object: 1,
        lagging: true,
    });
    for _ in 0..9 {
        world.apply(Event::Step {
            writes: 9,
            reports: true,
        });
    }
    assert!(
        !world.undeclared_objects().is_empty(),
        "the model does not detect it: {world:?}"
    );
}

#[test]
fn without_the_generation_check_an_object_would_be_lost() {
    let mut world = World::new(SETTLE);
    world.apply(Event::Move { version: 1 });
    for _ in 0..3 {
        world.apply(Event::Step {
            writes: 9,
            reports: true,
        });
        world.apply(Event::Pass { seconds: 10 });
    }
    // The first object is rewritten; now it is written in the previous version, while that is the storage
    // version again.
    world.apply(Event::Move { version: 0 });
    world.apply(Event::Write {
        object: 0,
        lagging: false,
    });
    world.apply(Event::Pass { seconds: 10 });
    world.apply(Event::Move { version: 1 });
    world.apply(Event::Restart);
    let mut blind = world.clone();
    if let Some(migration) = &mut blind.status {
        migration.generation = blind.generation;
    }
    for world in [&mut world, &mut blind] {
        for _ in 0..20 {
            world.apply(Event::Step {
                writes: 9,
                reports: true,
            });
            world.apply(Event::Pass { seconds: 1 });
        }
    }
    assert!(world.undeclared_objects().is_empty());
    assert!(
        !blind.undeclared_objects().is_empty(),
        "the model does not detect it: {blind:?}"
    );
}
