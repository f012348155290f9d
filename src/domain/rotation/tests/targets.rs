//! Targets that lag, regress and refuse.

use crate::domain::rotation::{
    Blocked, Change, Reason, Step, Trust,
    tests::{DAY, changes, generation, lag::WebhookConfiguration, settled, step, world::timing},
};

#[test]
fn a_regressed_target_is_repaired_before_the_next_ca_signs() {
    let mut world = settled();
    world.targets[0].bundle = None;
    world.request = Some("ca:1".to_owned());
    let first = step(&mut world);
    assert_eq!(changes(&first), Some(&Change::RecordTrust(Trust::Repairing)));
    assert_eq!(first.conditions.trusted.reason, Reason::Untrusted);
    step(&mut world);
    let plan = step(&mut world);
    assert!(matches!(plan.steps.as_slice(), [Step::InjectTarget { target, .. }] if target.name == "0"));
    assert_eq!(generation(&world), 1);
    assert!(world.settle(&timing()));
    assert_eq!(generation(&world), 2);
}

#[test]
fn a_target_that_refuses_is_named_and_the_others_go_on() {
    let mut world = settled();
    world.targets[1].refuses = true;
    world.request = Some("ca:1".to_owned());
    for _ in 0..20 {
        step(&mut world);
        world.reload(0);
        world.targets.iter_mut().for_each(WebhookConfiguration::propagate);
        world.tick();
    }
    assert_eq!(generation(&world), 2);
    let plan = world.plan(&timing());
    assert!(matches!(plan.blocked.as_slice(), [Blocked::Target { target, .. }] if target.name == "1"));
    assert_eq!(plan.conditions.ready.reason, Reason::Blocked);
    assert_eq!((plan.targets.current, plan.targets.total), (1, 2));
    assert_eq!(plan.wake_up, timing().retry);
    assert!(world.is_trusted());

    // It does not know CA 3, so CA 3 does not sign.
    world.request = Some("ca:2".to_owned());
    for _ in 0..20 {
        step(&mut world);
        world.tick();
    }
    assert_eq!(generation(&world), 2);
    world.targets[1].refuses = false;
    assert!(world.settle(&timing()));
    assert_eq!(generation(&world), 3);
}

#[test]
fn a_target_that_refuses_for_ever_does_not_let_the_others_expire() {
    let mut world = settled();
    let mut generations = Vec::new();
    world.targets[1].refuses = true;
    for _ in 0..150 {
        world.now += 10 * DAY;
        for _ in 0..20 {
            step(&mut world);
            world.reload(0);
            world.targets.iter_mut().for_each(WebhookConfiguration::propagate);
            world.tick();
        }
        generations.push(generation(&world));
        let served = world.pods[0].chain.unwrap();
        assert!(served.leaf.is_valid_at(world.now), "{}", world.now);
        assert!(
            world.targets[0]
                .bundle
                .as_ref()
                .unwrap()
                .verifies(&served, world.now)
        );
    }
    assert!(generations.last() > generations.first(), "{generations:?}");
}
