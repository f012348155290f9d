//! Issuance and renewal of certificates.

use jiff::SignedDuration;

use crate::{
    pki::Validity,
    rotation::{
        CaChange, Chain, ConditionStatus, Leaf, Reason, RotationPhase, Step, Timing,
        tests::{
            DAY, HOUR, changes, generation, settled, step,
            world::{self, World, timing},
        },
    },
};

#[test]
fn an_empty_cluster_starts_with_two_cas_in_one_write() {
    let plan = World::new(2, &[true]).plan(&timing());
    let Some(CaChange::Create {
        current: Some((current, _)),
        next,
        retiring,
        ..
    }) = changes(&plan)
    else {
        panic!("{plan:#?}");
    };
    assert_eq!((current.generation, next.generation), (1, 2));
    assert!(retiring.is_empty());
    assert_eq!(plan.wake_up, SignedDuration::ZERO);
    assert_eq!(plan.conditions.ready.reason, Reason::NotIssued);
}

#[test]
fn a_settled_cluster_needs_no_write() {
    let plan = settled().plan(&timing());
    assert_eq!(plan.steps, []);
    assert_eq!(plan.phase, RotationPhase::Stable);
    assert_eq!(
        plan.conditions.ready.status,
        ConditionStatus::True,
        "{:?}",
        plan.conditions
    );
    assert_eq!(plan.conditions.ready.reason, Reason::Current);
    assert_eq!((plan.targets.current, plan.targets.total), (2, 2));
    assert_eq!((plan.endpoints.current, plan.endpoints.total), (1, 1));
    assert_eq!(plan.wake_up, timing().longest_sleep);
}

#[test]
fn an_existing_ca_stays_trusted_while_the_first_ca_is_distributed() {
    let validity = Validity {
        not_before: world::start_of_2026(),
        not_after: world::start_of_2026() + 30 * DAY,
    };
    let foreign = world::certificate(100, None, None, validity);
    let mut world = World::new(1, &[true]);
    world.targets[0].bundle = Some([foreign].into_iter().collect());
    world.targets[0].propagate();
    world.pods[0].chain = Some(Chain {
        leaf: world::certificate(101, None, Some(foreign.key_id), validity),
        cross: None,
    });
    let plan = world.plan(&timing());
    let Some(CaChange::Create {
        current: None,
        retiring,
        ..
    }) = changes(&plan)
    else {
        panic!("{plan:#?}");
    };
    assert_eq!(*retiring, [foreign]);
    for _ in 0..20 {
        step(&mut world);
        assert!(world.is_trusted());
        world.targets[0].propagate();
        world.tick();
        world.reload(0);
        assert!(world.is_trusted());
    }
    assert_eq!(world.plan(&timing()).phase, RotationPhase::Stable);
}

// === Renewal ===

#[test]
fn a_leaf_is_renewed_between_three_fifths_and_two_thirds_of_its_life_and_touches_no_target() {
    let mut world = settled();
    let due = world.plan(&timing()).leaf_renewal.unwrap();
    let life = timing().leaf_life;
    assert!(
        due <= world.now + life / 3 * 2 && due >= world.now + life / 5 * 3,
        "{due}"
    );

    world.now = due - HOUR;
    assert_eq!(world.plan(&timing()).steps, []);
    world.now = due;
    let plan = world.plan(&timing());
    let [Step::PublishServing(publication)] = plan.steps.as_slice() else {
        panic!("{:#?}", plan.steps);
    };
    let Leaf::Issue { validity, .. } = publication.leaf else {
        panic!("{publication:#?}");
    };
    assert_eq!(validity.not_after.as_second(), (due + life).as_second());
    assert_eq!(plan.phase, RotationPhase::Stable);
}

#[test]
fn leaves_issued_together_are_renewed_apart() {
    let validity = timing().authority_validity(world::start_of_2026());
    let due = |number| timing().leaf_renewal(&world::certificate(number, None, None, validity));
    assert!((1..=255).all(|number| due(number) < due(number - 1)));
}

#[test]
fn a_leaf_limited_by_its_ca_is_not_renewed_early() {
    let mut world = settled();
    let end = world
        .authorities
        .as_ref()
        .unwrap()
        .current
        .unwrap()
        .certificate
        .validity
        .not_after;
    // A target that rejects writes does not have the next CA, so the current one signs until it expires.
    world.targets[1].bundle = None;
    world.targets[1].refuses = true;
    world.targets[1].refused = true;
    let mut issued = Vec::new();
    while world.now + 5 * HOUR < end {
        world.now += 5 * HOUR;
        let steps = step(&mut world).steps;
        world.reload(0);
        world.tick();
        issued.extend(steps.into_iter().filter_map(|step| match step {
            Step::PublishServing(publication) => Some(publication.leaf),
            _ => None,
        }));
        assert!(
            world.pods[0].chain.unwrap().leaf.is_valid_at(world.now),
            "{}",
            world.now
        );
    }
    assert!(issued.len() < 16, "{issued:#?}");
    assert!(generation(&world) > 1);
}

#[test]
fn a_leaf_never_outlives_its_ca() {
    let validity = Validity {
        not_before: world::start_of_2026(),
        not_after: world::start_of_2026() + DAY,
    };
    let authority = world::certificate(1, None, None, validity);
    let leaf = timing().leaf_validity(world::start_of_2026(), &authority);
    assert_eq!(leaf.not_after, validity.not_after);
}

#[test]
fn only_a_shorter_duration_replaces_the_leaf_immediately() {
    let world = settled();
    let with = |leaf_life| {
        world
            .plan(&Timing {
                leaf_life,
                ..timing()
            })
            .steps
    };
    assert!(matches!(with(DAY).as_slice(), [Step::PublishServing(_)]));
    assert_eq!(with(2 * timing().leaf_life), []);
}

#[test]
fn a_new_ca_duration_replaces_the_next_ca_before_it_signs() {
    let world = settled();
    let (leaf_life, authority_life) = (timing().leaf_life / 4, timing().authority_life / 4);
    let plan = world.plan(&Timing {
        leaf_life,
        authority_life,
        ..timing()
    });
    assert!(
        matches!(changes(&plan), Some(CaChange::IssueNext(_))),
        "{plan:#?}"
    );
}

#[test]
fn names_outside_the_ca_constraints_wait_for_the_next_ca() {
    let mut world = settled();
    let authorities = world.authorities.as_mut().unwrap();
    authorities.current.as_mut().unwrap().matches_spec = false;
    authorities.next.as_mut().unwrap().matches_spec = false;
    world.serving.as_mut().unwrap().matches_spec = false;
    let plan = world.plan(&timing());
    assert!(
        matches!(changes(&plan), Some(CaChange::IssueNext(_))),
        "{plan:#?}"
    );
    assert_eq!(plan.phase, RotationPhase::Distributing);
    assert!(world.settle(&timing()));
    assert_eq!(generation(&world), 3);
}

#[test]
fn a_ca_is_replaced_after_two_thirds_of_its_life() {
    let mut world = settled();
    let due = world.plan(&timing()).authority_renewal.unwrap();
    assert!(due <= world.now + timing().authority_life / 3 * 2);
    world.now = due - HOUR;
    assert!(world.settle(&timing()));
    assert_eq!(generation(&world), 1);
    world.now = due;
    assert!(matches!(
        changes(&world.plan(&timing())),
        Some(CaChange::Promote { cross: Some(_), .. })
    ));
    assert!(world.settle(&timing()));
    assert_eq!(generation(&world), 2);
    assert!(!world.bad_write);
}

#[test]
fn ten_years_of_settling_every_ten_days_keep_everything_valid() {
    let mut world = settled();
    for _ in 0..365 {
        world.now += 10 * DAY;
        assert!(world.settle(&timing()), "{}", world.now);
        assert!(world.is_trusted() && !world.bad_write);
        let served = world.pods[0].chain.unwrap();
        assert!(served.leaf.is_valid_at(world.now));
        let bundle = world.targets[0].bundle.as_ref().unwrap();
        assert!(bundle.verifies(&served, world.now));
        assert_eq!(bundle.iter().count(), 2);
    }
    assert!(generation(&world) >= 14, "{}", generation(&world));
}
