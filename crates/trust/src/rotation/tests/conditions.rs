//! The messages of conditions, compared with the counts next to them.

use jiff::SignedDuration;

use crate::rotation::{
    Assessment, CaChange, ConditionStatus, Observation, Reason, Timing, plan,
    tests::{
        step,
        world::{World, timing},
    },
};

/// A server that did not reload, in the last sixth of the lifetime of its certificate.
fn late() -> World {
    let mut world = World::settled(2, &[true, true], &timing());
    let replaced = world.serving.as_ref().unwrap().leaf.unwrap();
    world.request = Some("leaf:1".to_owned());
    for _ in 0..10 {
        step(&mut world);
        world.tick();
    }
    world.reload(1);
    world.now = timing().last_sixth(&replaced);
    world
}

fn ready(observation: &Observation, timing: &Timing) -> Assessment {
    plan(observation, timing).conditions.ready
}

/// Alerts read only the reason, so it must show that calls are about to fail.
#[test]
fn a_server_that_did_not_reload_is_always_reported() {
    let good = late().observe();
    let invalid = Timing {
        authority_life: SignedDuration::from_hours(1),
        ..timing()
    };
    let changed = |change: fn(&mut Observation)| {
        let mut observation = good.clone();
        change(&mut observation);
        observation
    };
    let cases = [
        ("nothing", good.clone(), timing(), "has not reloaded"),
        ("durations", good.clone(), invalid, "ca.duration must be"),
        (
            "a target that rejects writes",
            changed(|observation| {
                observation.targets[0].refused = Some("forbidden by policy".to_owned());
                observation.targets[0].bundle = None;
            }),
            timing(),
            "forbidden by policy",
        ),
        (
            "a target without a trust bundle",
            changed(|observation| observation.targets[0].bundle = None),
            timing(),
            "updating its caBundle",
        ),
        (
            "a serving Secret without a leaf",
            changed(|observation| observation.serving.as_mut().unwrap().content.leaf = None),
            timing(),
            "waiting for a valid serving certificate",
        ),
        (
            "no Service",
            changed(|observation| observation.service.exists = false),
            timing(),
            "Service hook not found",
        ),
        (
            "an expired certificate at another endpoint",
            changed(|observation| {
                let leaf = &mut observation.endpoints[1].chains[0].leaf;
                leaf.issuer_key_id = crate::rotation::Digest([200; 20]);
            }),
            timing(),
            "1 serves a certificate that has expired or is not trusted",
        ),
    ];
    for (wrong, observation, timing, also) in cases {
        let ready = ready(&observation, &timing);
        assert_eq!(ready.reason, Reason::NotReloaded, "{wrong}: {}", ready.message);
        assert_eq!(ready.status, ConditionStatus::False, "{wrong}");
        assert!(
            ready.message.starts_with("0 has not reloaded"),
            "{}",
            ready.message
        );
        assert!(ready.message.contains(also), "{wrong}: {}", ready.message);
    }
}

/// Neither a new leader nor a new Secret clears an alarm.
#[test]
fn an_alarm_persists_when_waits_restart() {
    let mut world = late();
    world.restart_operator();
    assert_eq!(ready(&world.observe(), &timing()).reason, Reason::NotReloaded);
    let mut world = late();
    world.authorities.as_mut().unwrap().published = None;
    let plan = world.plan(&timing());
    assert!(matches!(
        super::changes(&plan),
        Some(CaChange::RecordPublished { .. })
    ));
    assert_eq!(plan.conditions.ready.reason, Reason::NotReloaded);
}

#[test]
fn a_new_certificate_gets_time_to_be_loaded() {
    let mut world = World::settled(1, &[true], &timing());
    let replaced = world.serving.as_ref().unwrap().leaf.unwrap();
    world.now = timing().last_sixth(&replaced);
    assert!(!world.plan(&timing()).steps.is_empty());
    step(&mut world);
    step(&mut world);
    assert_ne!(ready(&world.observe(), &timing()).reason, Reason::NotReloaded);
    world.now += timing().reload + SignedDuration::from_secs(1);
    assert_eq!(ready(&world.observe(), &timing()).reason, Reason::NotReloaded);
}

#[test]
fn reason_and_message_agree() {
    let world = World::settled(1, &[true], &timing());
    let mut asked = world.clone();
    asked.request = Some("everything".to_owned());
    let ready = asked.plan(&timing()).conditions.ready;
    assert_eq!(ready.status, ConditionStatus::True);
    assert_eq!(ready.reason, Reason::InvalidRequest, "{}", ready.message);

    // At the end of a rotation one pod is not observed yet.
    let mut rotated = world;
    rotated.request = Some("ca:1".to_owned());
    for _ in 0..20 {
        step(&mut rotated);
        rotated.targets[0].propagate();
        rotated.tick();
    }
    rotated.reload(0);
    rotated.start_pod(true, false);
    let ready = || rotated.plan(&timing()).conditions.ready;
    let until = |message: &str| message.split("; ").next().map(str::to_owned).unwrap();
    let waits = "waiting for 1 pod of Service hook to become ready";
    assert_eq!(
        (ready().reason, &*until(&ready().message)),
        (Reason::Updating, waits)
    );
    rotated.advance(1);
    let ready = rotated.plan(&timing()).conditions.ready;
    assert_eq!((ready.reason, &*until(&ready.message)), (Reason::Updating, waits));
}
