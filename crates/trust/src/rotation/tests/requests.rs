//! The annotation `windlass.dev/rotate`.

use crate::rotation::{
    Blocked, ConditionStatus, ManualRotation, Reason, Step,
    tests::{generation, lag::WebhookConfiguration, settled, step, world::timing},
};

#[test]
fn requests_are_parsed_or_rejected() {
    let cases = [
        ("leaf:now", Some(ManualRotation::Leaf)),
        ("ca:yearly", Some(ManualRotation::Authority)),
        ("ca:compromised", Some(ManualRotation::Compromised)),
        ("ca:compromised-2026-05-04", Some(ManualRotation::Compromised)),
        ("ca:compromised-all-1", Some(ManualRotation::AllCompromised)),
        ("leaf:", None),
        ("ca", None),
        ("", None),
        ("CA:x", None),
        ("root:x", None),
    ];
    for (value, request) in cases {
        assert_eq!(value.parse::<ManualRotation>().ok(), request, "{value:?}");
    }
}

#[test]
fn each_request_value_is_executed_once() {
    let mut world = settled();
    for (value, leaves, generations) in [("leaf:1", 1, 0), ("ca:2", 1, 1), ("leaf:1", 1, 0)] {
        let (leaf, ca) = (world.issued, generation(&world));
        world.request = Some(value.to_owned());
        assert!(world.settle(&timing()));
        assert_eq!(generation(&world) - ca, generations, "{value}");
        // A CA rotation creates a leaf, a cross certificate and a next CA.
        assert_eq!(
            u32::from(world.issued - leaf),
            leaves + 2 * generations,
            "{value}"
        );
        assert_eq!(world.plan(&timing()).steps, []);
        world.request = None;
        assert_eq!(world.plan(&timing()).steps, []);
    }
}

#[test]
fn an_unknown_request_is_reported_and_changes_nothing() {
    let mut world = settled();
    world.request = Some("rotate please".to_owned());
    let plan = world.plan(&timing());
    assert_eq!(plan.steps, []);
    assert!(
        matches!(plan.blocked.as_slice(), [Blocked::Request(message)] if message.contains("rotate please"))
    );
    assert_eq!(plan.conditions.ready.status, ConditionStatus::True);
}

#[test]
fn a_ca_rotation_writes_each_target_once() {
    let mut world = settled();
    world.request = Some("ca:1".to_owned());
    let mut writes = 0;
    for _ in 0..30 {
        let plan = step(&mut world);
        writes += plan
            .steps
            .iter()
            .filter(|step| matches!(step, Step::InjectTarget { .. }))
            .count();
        world.reload(0);
        world.targets.iter_mut().for_each(WebhookConfiguration::propagate);
        world.tick();
    }
    assert_eq!(writes, world.targets.len());
    assert_eq!(generation(&world), 2);
}

#[test]
fn a_compromised_ca_signs_no_cross_certificate_and_is_not_delayed() {
    let mut world = settled();
    world.request = Some("ca:compromised".to_owned());
    // The pod never reloads.
    for _ in 0..12 {
        step(&mut world);
        world.tick();
    }
    let authorities = world.authorities.as_ref().unwrap();
    assert_eq!((authorities.retiring.len(), authorities.cross), (0, None));
    assert_eq!(world.serving.as_ref().unwrap().cross, None);
    assert_eq!(world.plan(&timing()).conditions.served.reason, Reason::NotServed);
}

#[test]
fn a_compromised_next_ca_never_signs() {
    let mut world = settled();
    let before = world.authorities.clone().unwrap();
    world.request = Some("ca:compromised-all".to_owned());
    assert!(world.settle(&timing()));
    assert_eq!(generation(&world), 3);
    let now = world.authorities.unwrap();
    assert!(
        before
            .certificates()
            .all(|authority| !now.knows(authority.key_id))
    );
}
