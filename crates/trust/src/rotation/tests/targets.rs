//! Targets that lag, lose the bundle or reject writes.

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
    // The request is recorded first.
    let first = step(&mut world);
    assert_eq!(first.conditions.trusted.reason, Reason::Untrusted);
    let plan = step(&mut world);
    assert!(matches!(plan.steps.as_slice(), [Step::InjectTarget { target, .. }] if target.name == "0"));
    // Wait until every API server has seen the target.
    assert_eq!(world.plan(&timing()).steps, []);
    assert_eq!(world.plan(&timing()).wake_up, timing().trust);
    assert_eq!(generation(&world), 1);
    assert!(world.settle(&timing()));
    assert_eq!(generation(&world), 2);
}

#[test]
fn file_readers_get_as_long_as_servers() {
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
fn tenant_writes_do_not_delay_rotations() {
    for (is_namespaced, expected) in [(true, 2), (false, 1)] {
        let mut world = settled();
        world.targets[0].is_namespaced = is_namespaced;
        world.request = Some("ca:1".to_owned());
        for _ in 0..20 {
            // The plan cannot rely on seeing the same target each time.
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
fn a_rejecting_target_is_reported_and_the_others_continue() {
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

    // The target does not have CA 3, so CA 3 does not sign.
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
fn a_permanently_rejecting_target_does_not_let_others_expire() {
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
fn repairs_wait_for_endpoints_only_if_an_unknown_ca_may_be_served() {
    let mut world = settled();
    world.targets[1].bundle = None;
    let observation = Observation {
        endpoints: Vec::new(),
        ..world.observe()
    };
    let steps = repairs(&observation, &timing());
    assert!(matches!(steps.as_slice(), [Step::InjectTarget { target, .. }] if target.name == "1"));

    // The CA Secret was deleted or restored from a backup: served certificates may need what targets carry.
    let current = world.authorities.as_ref().unwrap().current;
    world.authorities.as_mut().unwrap().current = None;
    assert_eq!(repairs(&world.observe(), &timing()), []);
    world.authorities.as_mut().unwrap().current = current;
    assert_eq!(repairs(&world.observe(), &timing()).len(), 1);
    world.authorities = None;
    assert_eq!(repairs(&world.observe(), &timing()), []);
}

#[test]
fn a_contested_target_is_reported_and_repaired_when_due() {
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

    // While it carries the trust bundle, calls succeed, and it is still reported.
    observation.targets[0].bundle = observation.targets[1].bundle.clone();
    let repaired = plan(&observation, &timing());
    assert_eq!(repaired.conditions.ready.status, ConditionStatus::True);
    assert_eq!(repaired.conditions.ready.reason, Reason::Contested);
    assert!(matches!(repaired.blocked.as_slice(), [Blocked::Contested { target, .. }] if target.name == "0"));
}

#[test]
fn an_unlisted_kind_blocks_only_the_ca_replacement() {
    let finish = |world: &mut World| {
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
    finish(&mut world);
    assert_eq!(generation(&world), 1, "the next CA does not sign");
    assert!(world.targets[0].bundle.is_some(), "known targets are repaired");
    let plan = world.plan(&timing());
    assert_eq!(plan.blocked, [Blocked::Unlisted("ExtensionConfig".to_owned())]);
    assert_eq!(plan.conditions.ready.status, ConditionStatus::True);
    assert_eq!(plan.conditions.ready.reason, Reason::TargetsUnlisted);
    world.request = Some("leaf:1".to_owned());
    finish(&mut world);
    assert_ne!(world.pods[0].chain.unwrap().leaf, leaf, "certificates are issued");
    assert_eq!(generation(&world), 1);

    // The next CA signs once the kind was listed. The CA that it replaced stays while the kind is unlisted
    // again.
    world.unlisted.clear();
    while generation(&world) == 1 {
        step(&mut world);
        world.tick();
    }
    world.unlisted = vec!["ExtensionConfig".to_owned()];
    finish(&mut world);
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
fn a_compromised_ca_is_removed_despite_unlisted_kinds() {
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

/// Runs a rotation while a tool restores the target's previous bundle every second.
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
fn a_tool_that_restores_a_stale_bundle_does_not_delay_promotion() {
    for request in ["ca:1", "ca:compromised", "ca:compromised-all"] {
        let world = rotates_under_a_stale_bundle(request);
        assert!(generation(&world) > 1, "{request}");
        assert!(world.is_trusted() || request == "ca:compromised-all", "{request}");
        let authorities = world.authorities.unwrap();
        assert_eq!(authorities.retiring, [], "{request}");
    }
}
