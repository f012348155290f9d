//! Targets that lag, regress and refuse.

use crate::rotation::{
    Blocked, ConditionStatus, Contested, Observation, Reason, Step, plan, repairs,
    tests::{
        DAY, generation,
        lag::WebhookConfiguration,
        settled, step,
        world::{World, timing},
    },
};

#[test]
fn a_regressed_target_is_repaired_before_the_next_ca_signs() {
    let mut world = settled();
    world.targets[0].bundle = None;
    world.request = Some("ca:1".to_owned());
    // What is asked for is noted first.
    let first = step(&mut world);
    assert_eq!(first.conditions.trusted.reason, Reason::Untrusted);
    let plan = step(&mut world);
    assert!(matches!(plan.steps.as_slice(), [Step::InjectTarget { target, .. }] if target.name == "0"));
    // Every API server is given the time to see it.
    assert_eq!(world.plan(&timing()).steps, []);
    assert_eq!(world.plan(&timing()).wake_up, timing().trust);
    assert_eq!(generation(&world), 1);
    assert!(world.settle(&timing()));
    assert_eq!(generation(&world), 2);
}

#[test]
fn who_reads_a_target_as_a_file_has_as_long_as_for_a_certificate() {
    let mut world = settled();
    world.targets[0].is_file = true;
    world.targets[1].bundle = None;
    world.request = Some("ca:1".to_owned());
    step(&mut world);
    step(&mut world);
    assert_eq!(world.plan(&timing()).steps, []);
    assert_eq!(world.plan(&timing()).wake_up, timing().reload);
    assert!(timing().reload > timing().trust);
    assert!(world.settle(&timing()));
    assert_eq!(generation(&world), 2);
}

#[test]
fn what_tenants_write_holds_no_rotation_up() {
    for (is_namespaced, expected) in [(true, 2), (false, 1)] {
        let mut world = settled();
        world.targets[0].is_namespaced = is_namespaced;
        world.request = Some("ca:1".to_owned());
        for _ in 0..20 {
            // Each time another one, for all that the plan knows.
            world.targets[0] = WebhookConfiguration::new(is_namespaced);
            step(&mut world);
            world.reload(0);
            world.targets.iter_mut().for_each(WebhookConfiguration::propagate);
            world.tick();
        }
        assert_eq!(generation(&world), expected, "namespaced: {is_namespaced}");
    }
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

#[test]
fn a_repair_waits_for_no_endpoint_unless_only_an_endpoint_knows_the_ca() {
    let mut world = settled();
    world.targets[1].bundle = None;
    let observation = Observation {
        endpoints: Vec::new(),
        ..world.observe()
    };
    let steps = repairs(&observation, &timing());
    assert!(matches!(steps.as_slice(), [Step::InjectTarget { target, .. }] if target.name == "1"));

    // The CA Secret is gone, or an older one was put in its place: what is served may need what targets carry.
    let current = world.authorities.as_ref().unwrap().current;
    world.authorities.as_mut().unwrap().current = None;
    assert_eq!(repairs(&world.observe(), &timing()), []);
    world.authorities.as_mut().unwrap().current = current;
    assert_eq!(repairs(&world.observe(), &timing()).len(), 1);
    world.authorities = None;
    assert_eq!(repairs(&world.observe(), &timing()), []);
}

#[test]
fn a_contested_target_is_named_with_who_contests_it_and_repaired_when_its_time_has_come() {
    let mut world = settled();
    world.targets[0].bundle = None;
    let mut observation = world.observe();
    let contested = |wait| Contested {
        by: Some("argocd-controller".to_owned()),
        repairs: 64,
        wait,
    };
    observation.targets[0].contested = Some(contested(Some(timing().repair_interval)));
    let waiting = plan(&observation, &timing());
    assert_eq!(waiting.steps, []);
    assert_eq!(waiting.wake_up, timing().repair_interval);
    assert_eq!(waiting.conditions.ready.reason, Reason::Untrusted);
    assert!(
        waiting
            .conditions
            .ready
            .message
            .contains("argocd-controller has overwritten caBundle at least 64 times"),
        "{:?}",
        waiting.conditions.ready
    );

    observation.targets[0].contested = Some(contested(None));
    assert_eq!(plan(&observation, &timing()).steps.len(), 1);

    // While it carries the trust bundle, calls work, and it is still said.
    observation.targets[0].bundle = observation.targets[1].bundle.clone();
    let repaired = plan(&observation, &timing());
    assert_eq!(repaired.conditions.ready.status, ConditionStatus::True);
    assert_eq!(repaired.conditions.ready.reason, Reason::Contested);
    assert!(matches!(repaired.blocked.as_slice(), [Blocked::Contested { target, .. }] if target.name == "0"));
}

#[test]
fn while_a_kind_of_targets_is_unlisted_no_ca_is_replaced_and_everything_else_goes_on() {
    let go_on = |world: &mut World| {
        for _ in 0..20 {
            step(world);
            world.reload(0);
            world.targets.iter_mut().for_each(WebhookConfiguration::propagate);
            world.tick();
        }
    };
    let mut world = settled();
    world.unlisted = vec!["ExtensionConfig".to_owned()];
    world.request = Some("ca:1".to_owned());
    world.targets[0].bundle = None;
    let leaf = world.pods[0].chain.unwrap().leaf;
    go_on(&mut world);
    assert_eq!(generation(&world), 1, "the next CA does not sign");
    assert!(world.targets[0].bundle.is_some(), "what is known is repaired");
    let plan = world.plan(&timing());
    assert_eq!(plan.blocked, [Blocked::Unlisted("ExtensionConfig".to_owned())]);
    assert_eq!(plan.conditions.ready.status, ConditionStatus::True);
    assert_eq!(plan.conditions.ready.reason, Reason::TargetsUnlisted);
    world.request = Some("leaf:1".to_owned());
    go_on(&mut world);
    assert_ne!(world.pods[0].chain.unwrap().leaf, leaf, "certificates are issued");
    assert_eq!(generation(&world), 1);

    // It signs once the kind was listed; what it replaced does not go where that is unknown again.
    world.unlisted.clear();
    while generation(&world) == 1 {
        step(&mut world);
        world.tick();
    }
    world.unlisted = vec!["ExtensionConfig".to_owned()];
    go_on(&mut world);
    let retiring = |world: &World| {
        let authorities = world.authorities.as_ref();
        authorities.map_or(0, |authorities| authorities.retiring.len())
    };
    assert_eq!(retiring(&world), 1);
    world.unlisted.clear();
    assert!(world.settle(&timing()));
    assert_eq!(retiring(&world), 0);
}

#[test]
fn a_compromised_ca_goes_whatever_cannot_be_listed() {
    let mut world = settled();
    world.unlisted = vec!["ExtensionConfig".to_owned()];
    world.request = Some("ca:compromised".to_owned());
    for _ in 0..30 {
        step(&mut world);
        world.reload(0);
        world.targets.iter_mut().for_each(WebhookConfiguration::propagate);
        world.tick();
    }
    assert_eq!(generation(&world), 2);
    let authorities = world.authorities.as_ref().unwrap();
    assert_eq!(authorities.retiring.len(), 0);
}

/// A tool that writes each second what the target carried before.
fn rotates_under_a_stale_bundle(request: &str) -> World {
    let mut world = settled();
    world.targets[0].stale = world.targets[0].bundle.clone();
    world.request = Some(request.to_owned());
    for _ in 0..40 {
        step(&mut world);
        world.targets.iter_mut().for_each(WebhookConfiguration::propagate);
        world.reload(0);
        world.tick();
        let target = &mut world.targets[0];
        target.bundle.clone_from(&target.stale);
    }
    world
}

#[test]
fn a_tool_that_puts_a_stale_bundle_back_each_second_holds_no_promotion_up() {
    for request in ["ca:1", "ca:compromised", "ca:compromised-all"] {
        let world = rotates_under_a_stale_bundle(request);
        assert!(generation(&world) > 1, "{request}");
        assert!(world.is_trusted() || request == "ca:compromised-all", "{request}");
        let authorities = world.authorities.unwrap();
        assert_eq!(authorities.retiring, [], "{request}");
    }
}
