//! Foreign CAs in the serving Secret.

use jiff::SignedDuration;

use crate::{
    pki::Validity,
    rotation::{
        CaState, PublishedSecret,
        endpoints::MAX_RETIRING,
        tests::{
            HOUR, step,
            world::{self, World, timing},
        },
    },
};

/// Writes a foreign root and leaf with a lifetime of a hundred years.
fn edit(world: &mut World, number: u8) {
    let validity = Validity {
        not_before: world.now - HOUR,
        not_after: world.now + SignedDuration::from_hours(24 * 36_500),
    };
    let root = world::certificate(number, None, None, validity);
    let leaf = world::certificate(number + 100, None, Some(root.key_id), validity);
    world.touches += 1;
    world.serving = Some(PublishedSecret {
        leaf: Some(leaf),
        matches_spec: true,
        cross: None,
        bundle: Some([root].into_iter().collect()),
        authority: None,
    });
}

fn observe_and_plan(world: &mut World) {
    for _ in 0..10 {
        step(world);
        world.targets[0].propagate();
        world.tick();
    }
}

fn authorities(world: &World) -> &CaState {
    world.authorities.as_ref().unwrap()
}

/// An unreachable endpoint keeps every adopted CA.
#[test]
fn repeated_secret_edits_get_few_cas_trusted_briefly() {
    let mut world = World::settled(1, &[false], &timing());
    let own = authorities(&world).current.unwrap().certificate;
    for number in 100..120 {
        edit(&mut world, number);
        observe_and_plan(&mut world);
        assert!(authorities(&world).retiring.len() <= MAX_RETIRING);
        let carried = world.targets[0].bundle.as_ref().unwrap();
        assert!(carried.contains(&own) && carried.iter().count() <= MAX_RETIRING + 2);
        let leaf = world.serving.as_ref().unwrap().leaf.unwrap();
        assert!(leaf.is_signed_by(&own), "the leaf is reissued");
        assert!(world.is_trusted());
    }
    assert_eq!(authorities(&world).retiring.len(), MAX_RETIRING);
    world.now = timing().expired_by_any_clock(world.now + timing().leaf_life) + HOUR;
    observe_and_plan(&mut world);
    assert!(authorities(&world).retiring.is_empty());
    assert!(authorities(&world).adopted.is_empty());
}

/// Calls succeed while an endpoint serves a certificate of an adopted CA.
#[test]
fn an_adopted_ca_stays_while_it_is_served() {
    let mut world = World::settled(1, &[true], &timing());
    edit(&mut world, 100);
    world.reload(0);
    observe_and_plan(&mut world);
    assert_eq!(authorities(&world).retiring.len(), 1);
    world.now = timing().expired_by_any_clock(world.now + timing().leaf_life) - HOUR;
    observe_and_plan(&mut world);
    assert_eq!(authorities(&world).retiring.len(), 1);
    assert!(world.is_trusted());
}
