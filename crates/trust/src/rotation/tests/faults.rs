//! Unreadable state and invalid durations.

use jiff::SignedDuration;

use crate::rotation::{
    CaChange, CaState, Leaf, Reason, Step, Timing, TimingProblem, plan,
    tests::{
        changes, settled, step,
        world::{World, timing},
    },
};

#[test]
fn an_unreadable_ca_secret_is_replaced_and_its_ca_stays_trusted() {
    let mut world = settled();
    world.authorities = Some(CaState::default());
    let plan = world.plan(&timing());
    let [
        Step::ChangeAuthorities {
            replacing: Some(_),
            change:
                CaChange::Create {
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
fn a_ca_without_its_key_is_replaced() {
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
fn a_missing_or_unusable_leaf_is_reissued() {
    let mut world = settled();
    world.serving.as_mut().unwrap().leaf = None;
    let plan = world.plan(&timing());
    assert!(
        matches!(plan.steps.as_slice(), [Step::PublishServing(publication)] if publication.leaf != Leaf::Keep)
    );
    assert_eq!(plan.conditions.ready.reason, Reason::NotIssued);
}

#[test]
fn an_edited_ca_crt_is_repaired_and_the_leaf_kept() {
    let mut world = settled();
    world.serving.as_mut().unwrap().bundle = None;
    world.touches += 1;
    let issued = world.issued;
    assert!(world.settle(&timing()));
    assert_eq!(world.issued, issued);
    assert_eq!(world.serving.unwrap().bundle, world.targets[0].bundle);
}

/// Both Secrets are lost and no endpoint can be reached: the bundles of targets are the only information
/// about served certificates.
#[test]
fn cas_of_targets_stay_trusted_when_secrets_and_endpoints_are_lost() {
    let mut world = World::settled(1, &[false], &timing());
    let known = world.targets[0].bundle.clone().unwrap();
    (world.authorities, world.serving) = (None, None);
    let mut observation = world.observe();
    observation.endpoints.clear();
    let planned = plan(&observation, &timing());
    let Some(CaChange::Create {
        current: None,
        retiring,
        ..
    }) = changes(&planned)
    else {
        panic!("{planned:#?}");
    };
    assert!(known.iter().all(|authority| retiring.contains(authority)));

    // The new CA signs once targets have it, although nothing is served until then.
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

/// Neither an unlisted kind nor a rejecting target delays the certificate.
#[test]
fn a_missing_certificate_is_issued_despite_any_obstacle() {
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
fn invalid_durations_are_all_reported() {
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
