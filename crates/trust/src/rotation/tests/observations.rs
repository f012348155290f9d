//! Properties of any observation.

use jiff::SignedDuration;
use proptest::prelude::*;

use crate::{
    pki::Validity,
    rotation::{
        CaState, CertificateId, ConditionStatus, Digest, KeyId, Leaf, ManualRotation, Observation, Reason,
        RotationPhase, Step, Timing, plan,
        tests::{
            HOUR,
            lag::Stage,
            run_until, settled, step,
            words::disagreement,
            world::{self, World, timing},
        },
    },
};

#[test]
fn a_key_identifier_of_another_length_is_hashed() {
    assert_eq!(KeyId::from_identifier(&[7; 20]), Digest([7; 20]));
    assert_ne!(KeyId::from_identifier(&[7; 8]), KeyId::from_identifier(&[7; 9]));
}

#[test]
fn ca_state_round_trips_without_observed_fields() {
    let mut world = settled();
    world.request = Some("ca:compromised".to_owned());
    run_until(&mut world, RotationPhase::Signing);
    let mut authorities = world.authorities.unwrap();
    let adopted = authorities.retiring[0].key_id;
    authorities.adopted.insert(adopted, world::start_of_2026());
    let stored = serde_json::to_string(&authorities).unwrap();
    let read: CaState = serde_json::from_str(&stored).unwrap();
    for authority in authorities.current.iter_mut().chain(&mut authorities.next) {
        authority.has_key = false;
        authority.matches_spec = false;
    }
    assert_eq!(read, authorities);
}

proptest! {
    #[test]
    fn digests_round_trip(bytes in any::<[u8; 32]>()) {
        prop_assert_eq!(Digest(bytes).to_string().parse(), Ok(Digest(bytes)));
    }

    #[test]
    fn parsing_digests_and_requests_never_panics(text in ".*") {
        let _ = text.parse::<Digest<20>>();
        let _ = text.parse::<ManualRotation>();
    }

    /// Any observation, however inconsistent, has a plan, and planning is deterministic.
    #[test]
    fn any_observation_has_a_plan(observation in observations(), hours in 1_i32..10_000) {
        let timing = Timing { leaf_life: HOUR * hours, authority_life: HOUR * (3 * hours), ..timing() };
        let planned = plan(&observation, &timing);
        prop_assert_eq!(&planned, &plan(&observation, &timing));
        let changes = planned.steps.iter().filter(|step| matches!(step, Step::ChangeAuthorities { .. })).count();
        prop_assert!(changes == 0 || planned.steps.len() == 1);
        prop_assert!(!planned.wake_up.is_negative() && planned.wake_up <= timing.longest_sleep);
        prop_assert_eq!(disagreement(&planned), None);
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

fn certificates() -> impl Strategy<Value = CertificateId> {
    (0_u8..6, 0_u8..6, -10_000_i32..10_000, 0_i32..20_000).prop_map(|(number, issuer, start, hours)| {
        let not_before = world::start_of_2026() + HOUR * start;
        let validity = Validity {
            not_before,
            not_after: not_before + HOUR * hours,
        };
        world::certificate(number, None, Some(Digest([issuer; 20])), validity)
    })
}

/// Generates observations of a settled world with arbitrary replacements.
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
        serving.matches_spec = flags[2];
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
fn every_step_has_an_event_message() {
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
fn an_unreachable_endpoint_makes_served_unknown() {
    let mut observation = settled().observe();
    observation.endpoints[0].chains.clear();
    observation.endpoints[0].unobservable = Some("timed out".to_owned());
    let plan = plan(&observation, &timing());
    assert_eq!(plan.steps, []);
    assert_eq!((plan.endpoints.current, plan.endpoints.total), (0, 1));
    assert_eq!(plan.conditions.served.status, ConditionStatus::Unknown);
    assert_eq!(plan.conditions.served.reason, Reason::Unobservable);
    assert!(plan.conditions.served.message.ends_with("; 0: timed out"));
    assert_eq!(plan.conditions.ready.status, ConditionStatus::True);
    assert_eq!(plan.conditions.ready.reason, Reason::Unobservable);
}

#[test]
fn a_missing_or_empty_service_is_reported() {
    let mut observation = settled().observe();
    let served = |observation: &Observation| plan(observation, &timing()).conditions.served;
    let says = |observation: &Observation, message: &str| {
        let verdict = served(observation);
        assert_eq!(verdict.reason, Reason::NoReadyEndpoints);
        assert_eq!(verdict.message, message);
    };
    // Advice appears only after pods had time to start.
    let now = observation.clock.now;
    for endpoint in &mut observation.endpoints {
        endpoint.ready = false;
        endpoint.created = Some(now);
    }
    let starting = "Service hook has no ready endpoints: waiting for 1 of its pods to become ready";
    says(&observation, starting);
    observation.endpoints[0].created = Some(now - HOUR);
    says(
        &observation,
        "Service hook has no ready endpoints: waiting for 1 of its pods to become ready; check why 0 is not",
    );
    let marked = observation.clock.mark;
    observation.clock.mark.run += 1;
    observation.clock.mark.uptime = SignedDuration::ZERO;
    says(&observation, starting);
    observation.endpoints.clear();
    says(
        &observation,
        "Service hook has no endpoints: waiting for its pods",
    );
    observation.clock.mark = marked;
    says(
        &observation,
        "Service hook has no endpoints: check that its selector matches running pods",
    );
    observation.service.starting = Some(2);
    says(
        &observation,
        "Service hook has no ready endpoints: waiting for 2 of its pods to become ready",
    );
    observation.service.exists = false;
    let verdict = served(&observation);
    assert_eq!(verdict.reason, Reason::NoService);
    assert!(verdict.message.contains("Service hook not found"));
}
