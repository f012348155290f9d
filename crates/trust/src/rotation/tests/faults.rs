//! State that makes no sense, and durations that do not.

use jiff::SignedDuration;

use crate::rotation::{
    CaChange, CaState, Leaf, Reason, Step, Timing, TimingProblem, plan,
    tests::{
        changes, settled, step,
        world::{World, timing},
    },
};

#[test]
fn an_unreadable_ca_secret_is_replaced_and_what_it_signed_stays_trusted() {
    let mut world = settled();
    world.authorities = Some(CaState::default());
    let plan = world.plan(&timing());
    let [
        Step::ChangeAuthorities {
            replacing: Some(_),
            change:
                CaChange::Found {
                    current: None,
                    retiring,
                    ..
                },
        },
    ] = plan.steps.as_slice()
    else {
        panic!("{plan:#?}");
    };
    assert_eq!(retiring.len(), 2);
    assert!(world.settle(&timing()) && world.is_trusted());
}

#[test]
fn a_ca_without_its_key_hands_over() {
    let mut world = settled();
    let authorities = world.authorities.as_mut().unwrap();
    authorities.current.as_mut().unwrap().has_key = false;
    assert!(matches!(
        changes(&world.plan(&timing())),
        Some(CaChange::Promote { cross: None, .. })
    ));
    assert!(world.settle(&timing()) && world.is_trusted());
}

#[test]
fn a_serving_secret_without_a_usable_leaf_gets_another() {
    let mut world = settled();
    world.serving.as_mut().unwrap().leaf = None;
    let plan = world.plan(&timing());
    assert!(
        matches!(plan.steps.as_slice(), [Step::PublishServing(publication)] if publication.leaf != Leaf::Keep)
    );
    assert_eq!(plan.conditions.ready.reason, Reason::NotIssued);
}

#[test]
fn an_edited_trust_bundle_in_the_serving_secret_is_put_right_and_the_leaf_is_kept() {
    let mut world = settled();
    world.serving.as_mut().unwrap().bundle = None;
    world.touches += 1;
    let issued = world.issued;
    assert!(world.settle(&timing()));
    assert_eq!(world.issued, issued);
    assert_eq!(world.serving.unwrap().bundle, world.targets[0].bundle);
}

/// Both Secrets are gone and nobody answers: what targets carry is all that is known of what may be served.
#[test]
fn what_targets_trust_stays_trusted_where_both_secrets_and_the_endpoints_are_gone() {
    let mut world = World::settled(1, &[false], &timing());
    let known = world.targets[0].bundle.clone().unwrap();
    (world.authorities, world.serving) = (None, None);
    let mut observation = world.observe();
    observation.endpoints.clear();
    let planned = plan(&observation, &timing());
    let Some(CaChange::Found {
        current: None,
        retiring,
        ..
    }) = changes(&planned)
    else {
        panic!("{planned:#?}");
    };
    assert!(known.iter().all(|authority| retiring.contains(authority)));

    // The new CA signs once targets have it, although there is nothing to serve until then.
    for _ in 0..20 {
        step(&mut world);
        world.reload(0);
        assert!(world.is_trusted());
        world.targets[0].propagate();
        world.tick();
    }
    let carried = world.targets[0].bundle.as_ref().unwrap();
    assert!(known.iter().all(|authority| carried.contains(authority)));
    assert!(world.settle(&timing()) && world.is_trusted());
}

/// A kind that cannot be listed, and a target that refuses, keep no certificate from being issued.
#[test]
fn a_certificate_is_issued_where_none_is_left_whatever_is_in_the_way() {
    let mut world = settled();
    (world.authorities, world.serving) = (None, None);
    world.unlisted = vec!["Gadget".to_owned()];
    world.targets[1].refuses = true;
    for _ in 0..10 {
        step(&mut world);
        world.tick();
    }
    assert!(world.serving.unwrap().leaf.is_some());
}

// === Durations ===

#[test]
fn durations_that_do_not_work_are_refused_all_at_once() {
    let timing = Timing {
        leaf_life: SignedDuration::from_secs(10),
        authority_life: SignedDuration::from_secs(15),
        ..Timing::default()
    };
    assert!(matches!(
        timing.problems().as_slice(),
        [
            TimingProblem::AuthorityTooShort { .. },
            TimingProblem::LeafTooShort { .. }
        ]
    ));
    assert_eq!(Timing::default().problems(), []);

    let plan = World::new(1, &[true]).plan(&timing);
    assert_eq!(plan.steps, []);
    assert_eq!(plan.conditions.ready.reason, Reason::InvalidDurations);

    let mut world = settled();
    world.targets[0].bundle = None;
    assert!(matches!(
        world.plan(&timing).steps.as_slice(),
        [Step::InjectTarget { .. }]
    ));
}
