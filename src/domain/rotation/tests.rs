//! Situations, one by one, and what is planned in them.

use jiff::SignedDuration;
use proptest::prelude::*;

use super::{
    Authorities, Blocked, Certificate, Chain, Change, Clock, Digest, KeyId, Leaf, Mark, Observation, Phase,
    Plan, Reason, Request, Rollout, Served, Step, Timing, TimingProblem, Trust, Validity, plan,
    world::{self, Stage, World, timing},
};

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);

fn settled() -> World {
    World::settled(2, &[true], &timing())
}

fn changes(plan: &Plan) -> Option<&Change> {
    match plan.steps.as_slice() {
        [Step::ChangeAuthorities { change, .. }] => Some(change),
        _ => None,
    }
}

fn step(world: &mut World) -> Plan {
    let plan = world.plan(&timing());
    for intent in world.intents(&timing()) {
        world.execute(&intent);
    }
    plan
}

fn generation(world: &World) -> u32 {
    let current = world
        .authorities
        .as_ref()
        .and_then(|authorities| authorities.current);
    current.unwrap().generation
}

/// Goes on until the plan is in that phase.
fn until(world: &mut World, phase: Phase) {
    for _ in 0..20 {
        if step(world).phase == phase {
            return;
        }
    }
    panic!("never {phase:?}: {world:#?}");
}

// === Beginning ===

#[test]
fn nothing_at_all_begins_with_two_authorities_in_one_write() {
    let plan = World::new(2, &[true]).plan(&timing());
    let Some(Change::Found {
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
fn a_settled_world_needs_no_write_and_says_so() {
    let plan = settled().plan(&timing());
    assert_eq!(plan.steps, []);
    assert_eq!(plan.phase, Phase::Stable);
    assert!(plan.conditions.ready.status, "{:?}", plan.conditions);
    assert_eq!(plan.conditions.ready.reason, Reason::Current);
    assert_eq!((plan.targets.current, plan.targets.total), (2, 2));
    assert_eq!((plan.endpoints.current, plan.endpoints.total), (1, 1));
    assert_eq!(plan.wake_up, timing().longest_sleep);
}

#[test]
fn what_another_manager_signed_stays_trusted_while_the_first_ca_is_made_known() {
    let validity = Validity {
        not_before: world::new_year(),
        not_after: world::new_year() + 30 * DAY,
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
    let Some(Change::Found {
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
    assert_eq!(world.plan(&timing()).phase, Phase::Stable);
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
    assert_eq!(plan.phase, Phase::Stable);
}

#[test]
fn leaves_issued_together_are_renewed_apart() {
    let validity = timing().authority_validity(world::new_year());
    let due = |number| timing().leaf_renewal(&world::certificate(number, None, None, validity));
    assert!((1..=255).all(|number| due(number) < due(number - 1)));
}

#[test]
fn a_leaf_never_outlives_its_ca() {
    let validity = Validity {
        not_before: world::new_year(),
        not_after: world::new_year() + DAY,
    };
    let authority = world::certificate(1, None, None, validity);
    let leaf = timing().leaf_validity(world::new_year(), &authority);
    assert_eq!(leaf.not_after, validity.not_after);
}

#[test]
fn a_shorter_duration_replaces_the_leaf_at_once_and_a_longer_one_does_not() {
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
    assert!(matches!(changes(&plan), Some(Change::IssueNext(_))), "{plan:#?}");
}

#[test]
fn names_that_the_ca_may_not_sign_wait_for_one_that_may() {
    let mut world = settled();
    let authorities = world.authorities.as_mut().unwrap();
    authorities.current.as_mut().unwrap().as_asked = false;
    authorities.next.as_mut().unwrap().as_asked = false;
    world.serving.as_mut().unwrap().as_asked = false;
    step(&mut world);
    let plan = world.plan(&timing());
    assert!(matches!(changes(&plan), Some(Change::IssueNext(_))), "{plan:#?}");
    assert_eq!(plan.phase, Phase::Distributing);
    assert!(world.settle(&timing()));
    assert_eq!(generation(&world), 3);
}

#[test]
fn a_ca_hands_over_after_two_thirds_of_its_life() {
    let mut world = settled();
    let due = world.plan(&timing()).authority_renewal.unwrap();
    assert!(due <= world.now + timing().authority_life / 3 * 2);
    world.now = due - HOUR;
    assert!(world.settle(&timing()));
    assert_eq!(generation(&world), 1);
    world.now = due;
    assert!(matches!(
        changes(&world.plan(&timing())),
        Some(Change::Promote { cross: Some(_), .. })
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

// === Requests ===

#[test]
fn requests_are_read_and_refused() {
    let cases = [
        ("leaf:now", Some(Request::Leaf)),
        ("ca:yearly", Some(Request::Authority)),
        ("ca:compromised", Some(Request::Compromised)),
        ("ca:compromised-2026-05-04", Some(Request::Compromised)),
        ("ca:compromised-all-1", Some(Request::AllCompromised)),
        ("leaf:", None),
        ("ca", None),
        ("", None),
        ("CA:x", None),
        ("root:x", None),
    ];
    for (value, request) in cases {
        assert_eq!(value.parse::<Request>().ok(), request, "{value:?}");
    }
}

#[test]
fn each_value_is_done_once_also_when_it_stays_or_goes() {
    let mut world = settled();
    for (value, leaves, generations) in [("leaf:1", 1, 0), ("ca:2", 1, 1), ("leaf:1", 1, 0)] {
        let (leaf, ca) = (world.issued, generation(&world));
        world.request = Some(value.to_owned());
        assert!(world.settle(&timing()));
        assert_eq!(generation(&world) - ca, generations, "{value}");
        // A rotation of the CA makes a leaf, a cross certificate and a next CA.
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
fn a_value_that_asks_for_nothing_is_said_and_changes_nothing() {
    let mut world = settled();
    world.request = Some("rotate please".to_owned());
    let plan = world.plan(&timing());
    assert_eq!(plan.steps, []);
    assert!(
        matches!(plan.blocked.as_slice(), [Blocked::Request(message)] if message.contains("rotate please"))
    );
    assert!(plan.conditions.ready.status);
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
        world
            .targets
            .iter_mut()
            .for_each(world::WebhookConfiguration::propagate);
        world.tick();
    }
    assert_eq!(writes, world.targets.len());
    assert_eq!(generation(&world), 2);
}

#[test]
fn a_compromised_ca_leaves_no_cross_certificate_and_waits_for_no_laggard() {
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

// === Targets ===

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
        world
            .targets
            .iter_mut()
            .for_each(world::WebhookConfiguration::propagate);
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
            world
                .targets
                .iter_mut()
                .for_each(world::WebhookConfiguration::propagate);
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

// === Endpoints ===

#[test]
fn an_endpoint_that_stays_on_the_old_ca_keeps_it_trusted() {
    let mut world = settled();
    world.request = Some("ca:1".to_owned());
    for _ in 0..30 {
        step(&mut world);
        world.tick();
    }
    let plan = world.plan(&timing());
    assert_eq!(plan.phase, Phase::Signing);
    assert!(matches!(plan.blocked.as_slice(), [Blocked::Endpoint { endpoint, .. }] if endpoint == "0"));
    assert_eq!(plan.conditions.ready.reason, Reason::Updating);
    assert_eq!(plan.wake_up, timing().poll);
    assert!(world.is_trusted());

    // What it serves ends, and nobody can verify it any more.
    world.now += timing().leaf_life + timing().clock_tolerance + HOUR;
    until(&mut world, Phase::Retiring);
}

#[test]
fn an_endpoint_that_cannot_be_dialled_is_given_the_reload_time() {
    let mut world = World::settled(1, &[false], &timing());
    world.request = Some("ca:1".to_owned());
    until(&mut world, Phase::Signing);
    while world.plan(&timing()).steps != [] {
        step(&mut world);
    }
    assert_eq!(world.plan(&timing()).wake_up, timing().reload);
    world.reload(0);
    world.tick();
    assert_eq!(world.plan(&timing()).steps, []);
    world.tick();
    assert!(matches!(
        changes(&world.plan(&timing())),
        Some(Change::Retire { .. })
    ));
}

#[test]
fn a_new_process_counts_its_waits_from_its_own_start() {
    let clock = |run, uptime| Clock {
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
    world.rollout = Some(Rollout {
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

// === Broken state ===

#[test]
fn an_unreadable_ca_secret_is_replaced_and_what_it_signed_stays_trusted() {
    let mut world = settled();
    world.authorities = Some(Authorities::default());
    let plan = world.plan(&timing());
    let [
        Step::ChangeAuthorities {
            replacing: Some(_),
            change:
                Change::Found {
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
        Some(Change::Promote { cross: None, .. })
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
    step(&mut world);
    assert!(matches!(
        world.plan(&timing).steps.as_slice(),
        [Step::InjectTarget { .. }]
    ));
}

// === Identifiers and stored state ===

#[test]
fn a_key_identifier_of_another_length_is_hashed() {
    assert_eq!(KeyId::from_identifier(&[7; 20]), Digest([7; 20]));
    assert_ne!(KeyId::from_identifier(&[7; 8]), KeyId::from_identifier(&[7; 9]));
}

#[test]
fn authorities_survive_being_stored_except_for_what_is_observed() {
    let mut world = settled();
    world.request = Some("ca:compromised".to_owned());
    until(&mut world, Phase::Signing);
    let mut authorities = world.authorities.unwrap();
    let stored = serde_json::to_string(&authorities).unwrap();
    let read: Authorities = serde_json::from_str(&stored).unwrap();
    for authority in authorities.current.iter_mut().chain(&mut authorities.next) {
        authority.has_key = false;
        authority.as_asked = false;
    }
    assert_eq!(read, authorities);
}

proptest! {
    #[test]
    fn digests_are_read_as_they_are_written(bytes in any::<[u8; 32]>()) {
        prop_assert_eq!(Digest(bytes).to_string().parse(), Ok(Digest(bytes)));
    }

    #[test]
    fn no_text_makes_a_digest_or_a_request_panic(text in ".*") {
        let _ = text.parse::<Digest<20>>();
        let _ = text.parse::<Request>();
    }

    /// Whatever was read, however little sense it makes: a plan comes out, and one that was made twice is the same.
    #[test]
    fn any_observation_has_a_plan(observation in observations(), hours in 1_i32..10_000) {
        let timing = Timing { leaf_life: HOUR * hours, authority_life: HOUR * (3 * hours), ..timing() };
        let planned = plan(&observation, &timing);
        prop_assert_eq!(&planned, &plan(&observation, &timing));
        let changes = planned.steps.iter().filter(|step| matches!(step, Step::ChangeAuthorities { .. })).count();
        prop_assert!(changes == 0 || planned.steps.len() == 1);
        prop_assert!(!planned.wake_up.is_negative() && planned.wake_up <= timing.longest_sleep);
        let now = observation.clock.now;
        for step in &planned.steps {
            let bundle = match step {
                Step::PublishServing(publication) => {
                    if let Leaf::Issue { validity, .. } = publication.leaf {
                        prop_assert!(validity.contains(now));
                    }
                    &publication.bundle
                }
                Step::InjectTarget { bundle, .. } => bundle,
                _ => continue,
            };
            prop_assert!(!bundle.is_empty());
            prop_assert!(bundle.iter().all(|authority| now <= authority.validity.not_after));
        }
    }
}

fn certificates() -> impl Strategy<Value = Certificate> {
    (0_u8..6, 0_u8..6, -10_000_i32..10_000, 0_i32..20_000).prop_map(|(number, issuer, start, hours)| {
        let not_before = world::new_year() + HOUR * start;
        let validity = Validity {
            not_before,
            not_after: not_before + HOUR * hours,
        };
        world::certificate(number, None, Some(Digest([issuer; 20])), validity)
    })
}

/// Observations of a settled world in which anything was replaced by anything.
fn observations() -> impl Strategy<Value = Observation> {
    let bundle = || prop::option::of(prop::collection::btree_set(certificates(), 0..4));
    let edits = (
        prop::option::of(certificates()),
        prop::option::of(certificates()),
        prop::collection::vec(certificates(), 0..3),
        prop::option::of(certificates()),
        [bundle(), bundle(), bundle()],
        any::<[bool; 6]>(),
    );
    edits.prop_map(|(current, next, retiring, leaf, bundles, flags)| {
        let mut world = World::settled(2, &[true, false], &timing());
        let authorities = world.authorities.as_mut().unwrap();
        for (authority, certificate) in [(&mut authorities.current, current), (&mut authorities.next, next)] {
            match (authority.as_mut(), certificate) {
                (Some(authority), Some(certificate)) => authority.certificate = certificate,
                _ if flags[0] => *authority = None,
                _ => {}
            }
        }
        authorities.retiring = retiring;
        let bundles = bundles.map(|bundle| bundle.map(|bundle| bundle.into_iter().collect()));
        let [published, first, second] = bundles;
        let serving = world.serving.as_mut().unwrap();
        serving.bundle = published;
        serving.leaf = leaf.or(serving.leaf.filter(|_| flags[1]));
        serving.as_asked = flags[2];
        world.targets[0].bundle = first;
        world.targets[1].bundle = second;
        world.targets[1].refused = flags[3];
        if flags[4] {
            world.serving = None;
        }
        world.pods[1].stage = if flags[5] { Stage::Starting } else { Stage::Ready };
        world.observe()
    })
}

#[test]
fn every_step_can_be_told_in_an_event() {
    let mut world = settled();
    world.request = Some("ca:compromised".to_owned());
    let mut told = Vec::new();
    for _ in 0..12 {
        told.extend(step(&mut world).steps.iter().map(ToString::to_string));
        world.tick();
    }
    assert!(
        told.iter()
            .any(|event| event.contains("will fail once it is retired")),
        "{told:#?}"
    );
    assert!(told.iter().all(|event| !event.is_empty()));
}

#[test]
fn an_endpoint_that_serves_nothing_known_holds_nothing() {
    let mut observation = settled().observe();
    observation.endpoints[0].served = Served::Unobservable("timed out".to_owned());
    let plan = plan(&observation, &timing());
    assert_eq!(plan.steps, []);
    assert_eq!((plan.endpoints.current, plan.endpoints.total), (0, 1));
    assert_eq!(plan.conditions.served.reason, Reason::Updating);
}
