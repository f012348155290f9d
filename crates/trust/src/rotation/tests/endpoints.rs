//! Lagging endpoints and restarts of servers.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use windlass_object::{InCluster, ObjectKey};

use crate::rotation::{
    Blocked, CaChange, ClockReading, ConditionStatus, Digest, Mark, ObservedWorkload, Reason, RotationPhase,
    Step, plan,
    tests::{
        HOUR, changes, generation, run_until, settled, step,
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
    assert!(plan.wake_up >= timing().poll && plan.wake_up <= timing().longest_sleep);
    assert!(!plan.is_complete);
    assert!(world.is_trusted());

    // Checks become less frequent. From the last sixth of the lifetime the certificate is not ready.
    let leaf = world.pods[0].chain.unwrap().leaf;
    world.now = timing().last_sixth(&leaf) - HOUR;
    assert_eq!(
        world.plan(&timing()).conditions.ready.status,
        ConditionStatus::True
    );
    world.now = timing().last_sixth(&leaf);
    let late = world.plan(&timing()).conditions;
    assert_eq!(late.ready.status, ConditionStatus::False);
    assert_eq!(late.ready.reason, Reason::NotReloaded);
    assert_eq!(late.served.status, ConditionStatus::True);

    // The served certificate expires, so clients cannot verify it.
    world.now = timing().expired_by_any_clock(leaf.validity.not_after) + HOUR;
    run_until(&mut world, RotationPhase::Retiring);
    let retired = world.authorities.clone().unwrap().generation;
    for _ in 0..10 {
        step(&mut world);
        world.tick();
    }
    assert_eq!(world.plan(&timing()).phase, RotationPhase::Stable);
    assert_eq!(world.authorities.unwrap().generation, retired);
}

/// A rotation in progress after every server had time to reload.
fn rotated(pods: &[bool]) -> World {
    let mut world = World::settled(1, pods, &timing());
    world.request = Some("ca:1".to_owned());
    for _ in 0..20 {
        step(&mut world);
        world.targets[0].propagate();
        world.tick();
    }
    world
}

fn retiring(world: &World) -> usize {
    let authorities = world.authorities.as_ref();
    authorities.map_or(0, |authorities| authorities.retiring.len())
}

#[test]
fn an_unreachable_endpoint_keeps_the_ca_until_its_last_certificate_expires() {
    let mut world = rotated(&[false]);
    let last = world.pods[0].chain.unwrap().leaf.validity.not_after;
    world.reload(0);
    let plan = world.plan(&timing());
    assert_eq!(plan.steps, []);
    assert!(matches!(plan.blocked.as_slice(), [Blocked::Unobservable { until, .. }] if *until >= last));
    assert_eq!(plan.conditions.ready.reason, Reason::Unobservable);
    assert!(plan.is_complete, "nothing else can be observed");

    world.now = last + HOUR;
    step(&mut world);
    assert_eq!(retiring(&world), 1, "a wall clock may be wrong");
    world.now = timing().expired_by_any_clock(last) + HOUR;
    for _ in 0..5 {
        step(&mut world);
        world.tick();
    }
    assert_eq!(retiring(&world), 0);
}

#[test]
fn an_unreachable_endpoint_does_not_block_the_next_rotation() {
    let mut world = rotated(&[false]);
    assert_eq!((retiring(&world), generation(&world)), (1, 2));
    for request in 2_usize..8 {
        world.request = Some(format!("ca:{request}"));
        for _ in 0..20 {
            step(&mut world);
            world.targets[0].propagate();
            world.tick();
        }
        assert_eq!(
            retiring(&world),
            request.min(3),
            "trust bundles must not grow without limit"
        );
    }
}

#[test]
fn an_unreachable_port_is_not_hidden_by_a_reachable_one() {
    let mut world = rotated(&[true]);
    world.reload(0);
    let mut observation = world.observe();
    observation.endpoints[0].unobservable = Some("port 8443: connection refused".to_owned());
    let plan = plan(&observation, &timing());
    assert!(
        matches!(plan.blocked.as_slice(), [Blocked::Unobservable { .. }]),
        "{:?}",
        plan.blocked
    );
    assert!(changes(&plan).is_none());
    assert_eq!(plan.endpoints.current, 0);
    assert!(matches!(
        changes(&world.plan(&timing())),
        Some(CaChange::Retire { .. })
    ));
}

#[test]
fn starting_pods_and_missing_endpoints_keep_the_ca() {
    let mut world = rotated(&[true]);
    world.reload(0);
    let mut observation = world.observe();
    observation.service.starting = Some(1);
    assert!(changes(&plan(&observation, &timing())).is_none());
    observation.service.starting = None;
    assert!(changes(&plan(&observation, &timing())).is_none());
    observation.service.starting = Some(0);
    observation.endpoints.clear();
    let held = plan(&observation, &timing());
    assert!(changes(&held).is_none());
    assert!(
        matches!(held.blocked.as_slice(), [Blocked::Unobservable { message, .. }] if message.contains("no endpoints"))
    );
}

#[test]
fn an_unrelated_secret_write_does_not_restart_waits() {
    let mut world = rotated(&[true]);
    let published = world.authorities.as_ref().unwrap().published.clone();
    for _ in 0..5 {
        world.touches += 1;
        step(&mut world);
        world.tick();
    }
    assert_eq!(world.authorities.unwrap().published, published);
}

#[test]
fn unchanged_endpoints_are_checked_less_and_less_often() {
    let mut world = pod_without_reload(false);
    world.workloads.clear();
    let mut sleeps = Vec::new();
    for _ in 0..12 {
        let sleep = world.plan(&timing()).wake_up;
        sleeps.push(sleep);
        world.uptime += sleep.as_secs();
    }
    assert!(sleeps.is_sorted(), "{sleeps:?}");
    assert_eq!(sleeps.last(), Some(&timing().longest_sleep));
}

#[test]
fn replaced_leaves_are_forgotten_once_all_endpoints_serve_the_new_one() {
    let mut world = settled();
    world.request = Some("leaf:1".to_owned());
    for _ in 0..10 {
        step(&mut world);
        world.tick();
    }
    assert_eq!(world.authorities.as_ref().unwrap().leaves.len(), 2);
    world.reload(0);
    for _ in 0..2 {
        step(&mut world);
    }
    assert!(world.plan(&timing()).is_complete);
    let leaves = world.authorities.as_ref().unwrap().leaves.clone();
    assert_eq!(leaves, [world.serving.as_ref().unwrap().leaf.unwrap()]);

    // A later connection failure does not raise an alarm.
    world.pods[0].observable = false;
    world.now = timing().last_third(&leaves[0]) - HOUR;
    assert_eq!(
        world.plan(&timing()).conditions.ready.status,
        ConditionStatus::True
    );
}

#[test]
fn a_rotation_ends_when_no_pod_can_start_with_the_old_leaf() {
    let mut world = settled();
    world.request = Some("leaf:1".to_owned());
    while !world.plan(&timing()).steps.is_empty() {
        step(&mut world);
    }
    world.reload(0);
    let plan = world.plan(&timing());
    assert_eq!((plan.endpoints.current, plan.endpoints.total), (1, 1));
    assert!(!plan.is_complete);
    assert_eq!(plan.wake_up, timing().overlap);
}

#[test]
fn an_unreachable_endpoint_is_not_ready_when_its_leaf_may_expire_soon() {
    let mut world = World::settled(1, &[false], &timing());
    let replaced = world.serving.as_ref().unwrap().leaf.unwrap();
    world.request = Some("leaf:1".to_owned());
    for _ in 0..10 {
        step(&mut world);
        world.tick();
    }
    let ready = |world: &World| world.plan(&timing()).conditions.ready;
    world.now = timing().last_sixth(&replaced) - HOUR;
    assert_eq!(ready(&world).reason, Reason::Unobservable);
    world.now = timing().last_sixth(&replaced) + HOUR;
    assert_eq!(ready(&world).status, ConditionStatus::False);
    assert_eq!(ready(&world).reason, Reason::NotReloaded);

    // A pod created later can have read only the new leaf.
    let mut observation = world.observe();
    observation.endpoints[0].created = Some(world.now - HOUR);
    assert_eq!(
        plan(&observation, &timing()).conditions.ready.reason,
        Reason::Unobservable
    );
}

#[test]
fn a_later_publication_does_not_delay_an_alarm() {
    for observable in [false, true] {
        let mut world = World::settled(1, &[observable], &timing());
        let replaced = world.serving.as_ref().unwrap().leaf.unwrap();
        for (request, wait) in [("leaf:1", HOUR), ("leaf:2", -HOUR)] {
            world.now = timing().last_sixth(&replaced) - wait;
            world.request = Some(request.to_owned());
            while !world.plan(&timing()).steps.is_empty() {
                step(&mut world);
            }
            if request == "leaf:1" {
                let ready = world.plan(&timing()).conditions.ready;
                assert_ne!(ready.reason, Reason::NotReloaded, "it may be about to reload");
            }
        }
        let ready = world.plan(&timing()).conditions.ready;
        assert_eq!(ready.reason, Reason::NotReloaded, "observable: {observable}");
        world.restart_operator();
        let ready = world.plan(&timing()).conditions.ready;
        assert_eq!(ready.reason, Reason::NotReloaded, "another leader: {observable}");
    }
}

#[test]
fn the_first_and_last_of_many_leaves_are_remembered() {
    let mut authorities = settled().authorities.unwrap();
    let signer = authorities.current.unwrap().certificate;
    let first = authorities.leaves[0];
    for number in 100..200 {
        let validity = timing().leaf_validity(world::start_of_2026() + HOUR * i32::from(number), &signer);
        let leaf = world::certificate(number, None, Some(signer.key_id), validity);
        let change = CaChange::RecordPublished {
            published: authorities.published.clone().unwrap(),
            leaf,
        };
        let Ok(after) = authorities.with_change(&change, &mut world::Numbered(200));
        authorities = after;
        assert_eq!(authorities.leaves.first(), Some(&first));
        assert_eq!(authorities.leaves.last(), Some(&leaf));
        assert_eq!(authorities.signatures_end(&signer), leaf.validity.not_after);
    }
    assert!(authorities.leaves.len() < 10);
}

#[test]
fn a_new_process_restarts_waits() {
    let clock = |run, uptime| ClockReading {
        now: world::start_of_2026(),
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

/// The pod serves a replaced leaf, and the time to reload is over.
fn pod_without_reload(costs_requests: bool) -> World {
    let mut world = settled();
    world.request = Some("leaf:1".to_owned());
    world.workloads = vec![workload("server", "0", costs_requests)];
    for _ in 0..4 {
        step(&mut world);
    }
    world
}

fn workload(name: &str, pod: &str, costs_requests: bool) -> ObservedWorkload {
    ObservedWorkload {
        id: ObjectKey {
            cluster: InCluster::Local,
            api_version: "apps/v1".to_owned(),
            kind: "StatefulSet".to_owned(),
            namespace: Some("n".to_owned()),
            name: name.to_owned(),
        },
        pods: BTreeSet::from([pod.to_owned()]),
        costs_requests,
        progressing: false,
        restarted_for: None,
    }
}

fn restarts(world: &World) -> bool {
    matches!(
        world.plan(&timing()).steps.as_slice(),
        [Step::RestartRollout { .. }]
    )
}

#[test]
fn a_server_that_does_not_reload_is_restarted_once() {
    let mut world = pod_without_reload(false);
    assert_eq!(world.plan(&timing()).steps, []);
    assert_eq!(world.plan(&timing()).wake_up, timing().reload);
    world.tick();
    world.tick();
    assert!(restarts(&world));
    step(&mut world);
    assert_eq!(world.plan(&timing()).steps, []);
}

#[test]
fn only_workloads_that_do_not_reload_are_restarted() {
    let mut world = pod_without_reload(false);
    world.workloads.insert(0, workload("other", "1", false));
    world.tick();
    world.tick();
    let [Step::RestartRollout { workload, .. }] = &world.plan(&timing()).steps[..] else {
        panic!("{:#?}", world.plan(&timing()).steps);
    };
    assert_eq!(workload.name, "server");
}

#[test]
fn a_disruptive_restart_waits_for_the_last_third_of_the_lifetime() {
    let mut world = pod_without_reload(true);
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
fn a_compromised_ca_forces_disruptive_restarts() {
    let mut world = pod_without_reload(true);
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
fn unreachable_pods_are_restarted_if_that_costs_no_requests() {
    for costs_requests in [false, true] {
        let mut world = pod_without_reload(costs_requests);
        world.pods[0].observable = false;
        world.tick();
        world.tick();
        assert!(!restarts(&world), "it may have reloaded");
        let replaced = world.authorities.as_ref().unwrap().leaves[0];
        world.now = timing().last_third(&replaced) + HOUR;
        let restarts = |world: &World| {
            let steps = world.plan(&timing()).steps;
            steps
                .iter()
                .any(|step| matches!(step, Step::RestartRollout { .. }))
        };
        assert_eq!(restarts(&world), !costs_requests);
    }
}

#[test]
fn no_restart_during_rollouts_or_for_foreign_certificates() {
    let mut world = pod_without_reload(false);
    world.tick();
    world.tick();
    world.workloads[0].progressing = true;
    assert!(!restarts(&world));

    world.workloads[0].progressing = false;
    let chain = world.pods[0].chain.as_mut().unwrap();
    chain.leaf.issuer_key_id = Digest([200; 20]);
    assert!(!restarts(&world));
}
