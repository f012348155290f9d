//! Endpoints that lag, and servers that are restarted.

use jiff::SignedDuration;

use crate::rotation::{
    Blocked, CaChange, ClockReading, Digest, Mark, ObservedDeployment, Reason, RotationPhase, Step,
    tests::{
        HOUR, changes, settled, step, until,
        world::{self, World, timing},
    },
};

#[test]
fn an_endpoint_that_stays_on_the_old_ca_keeps_it_trusted() {
    let mut world = settled();
    world.request = Some("ca:1".to_owned());
    for _ in 0..30 {
        step(&mut world);
        world.tick();
    }
    let plan = world.plan(&timing());
    assert_eq!(plan.phase, RotationPhase::Signing);
    assert!(matches!(plan.blocked.as_slice(), [Blocked::Endpoint { endpoint, .. }] if endpoint == "0"));
    assert_eq!(plan.conditions.ready.reason, Reason::Updating);
    assert_eq!(plan.wake_up, timing().poll);
    assert!(world.is_trusted());

    // What it serves ends, and nobody can verify it any more.
    world.now += timing().leaf_life + timing().clock_tolerance + HOUR;
    until(&mut world, RotationPhase::Retiring);
    let retired = world.authorities.clone().unwrap().generation;
    for _ in 0..10 {
        step(&mut world);
        world.tick();
    }
    assert_eq!(world.plan(&timing()).phase, RotationPhase::Stable);
    assert_eq!(world.authorities.unwrap().generation, retired);
}

#[test]
fn an_endpoint_that_cannot_be_dialled_is_given_the_reload_time() {
    let mut world = World::settled(1, &[false], &timing());
    world.request = Some("ca:1".to_owned());
    until(&mut world, RotationPhase::Signing);
    while !world.plan(&timing()).steps.is_empty() {
        step(&mut world);
    }
    assert_eq!(world.plan(&timing()).wake_up, timing().reload);
    world.reload(0);
    world.tick();
    assert_eq!(world.plan(&timing()).steps, []);
    world.tick();
    assert!(matches!(
        changes(&world.plan(&timing())),
        Some(CaChange::Retire { .. })
    ));
}

#[test]
fn a_new_process_counts_its_waits_from_its_own_start() {
    let clock = |run, uptime| ClockReading {
        now: world::new_year(),
        mark: mark(run, uptime),
    };
    let cases = [
        (clock(1, 50), mark(1, 20), 30),
        (clock(1, 20), mark(1, 50), 0),
        (clock(2, 5), mark(1, 1_000), 5),
        (clock(2, 0), mark(1, 0), 0),
    ];
    for (clock, mark, seconds) in cases {
        assert_eq!(
            clock.since(&mark),
            SignedDuration::from_secs(seconds),
            "{clock:?} {mark:?}"
        );
    }
}

fn mark(run: u64, uptime: i64) -> Mark {
    Mark {
        run,
        uptime: SignedDuration::from_secs(uptime),
    }
}

// === Restarts ===

/// A world in which the pod serves a leaf that was replaced, and the time to reload it is over.
fn stubborn(costs_requests: bool) -> World {
    let mut world = settled();
    world.request = Some("leaf:1".to_owned());
    world.rollout = Some(ObservedDeployment {
        deployment: "server".to_owned(),
        costs_requests,
        progressing: false,
        restarted_for: None,
    });
    for _ in 0..4 {
        step(&mut world);
    }
    world
}

fn restarts(world: &World) -> bool {
    matches!(
        world.plan(&timing()).steps.as_slice(),
        [Step::RestartRollout { .. }]
    )
}

#[test]
fn a_server_that_does_not_reload_is_restarted_once() {
    let mut world = stubborn(false);
    assert_eq!(world.plan(&timing()).steps, []);
    assert_eq!(world.plan(&timing()).wake_up, timing().reload);
    world.tick();
    world.tick();
    assert!(restarts(&world));
    step(&mut world);
    assert_eq!(world.plan(&timing()).steps, []);
}

#[test]
fn a_restart_that_costs_requests_waits_for_the_last_third_of_what_is_served() {
    let mut world = stubborn(true);
    world.tick();
    world.tick();
    assert!(!restarts(&world));
    let leaf = world.pods[0].chain.unwrap().leaf;
    world.now = timing().last_third(&leaf) - HOUR;
    world.now = world.now.min(world.plan(&timing()).leaf_renewal.unwrap() - HOUR);
    assert!(!restarts(&world));
    world.now = timing().last_third(&leaf);
    let steps = world.plan(&timing()).steps;
    assert!(
        steps
            .iter()
            .any(|step| matches!(step, Step::RestartRollout { .. })),
        "{steps:#?}"
    );
}

#[test]
fn a_compromised_ca_has_its_laggards_restarted_even_where_that_costs_requests() {
    let mut world = stubborn(true);
    world.request = Some("ca:compromised".to_owned());
    let mut restarts = 0;
    for _ in 0..20 {
        let steps = step(&mut world).steps;
        restarts += steps
            .iter()
            .filter(|step| matches!(step, Step::RestartRollout { .. }))
            .count();
        world.tick();
    }
    assert_eq!(restarts, 1);
}

#[test]
fn nothing_is_restarted_while_pods_are_replaced_or_for_what_others_signed() {
    let mut world = stubborn(false);
    world.tick();
    world.tick();
    world.rollout.as_mut().unwrap().progressing = true;
    assert!(!restarts(&world));

    world.rollout.as_mut().unwrap().progressing = false;
    let chain = world.pods[0].chain.as_mut().unwrap();
    chain.leaf.issuer_key_id = Digest([200; 20]);
    assert!(!restarts(&world));
}
