//! CAs that somebody else puts into the serving Secret.

use jiff::SignedDuration;

use crate::{
    pki::Validity,
    rotation::{
        CaState, PublishedSecret,
        endpoints::MOST_BLIND,
        tests::{
            HOUR, step,
            world::{self, World, timing},
        },
    },
};

/// Somebody writes another root and leaf, both for a hundred years.
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
        as_asked: true,
        cross: None,
        bundle: Some([root].into_iter().collect()),
        authority: None,
    });
}

fn look(world: &mut World) {
    for _ in 0..10 {
        step(world);
        world.targets[0].propagate();
        world.tick();
    }
}

fn authorities(world: &World) -> &CaState {
    world.authorities.as_ref().unwrap()
}

/// One endpoint that nobody can dial holds whatever is adopted.
#[test]
fn who_edits_the_serving_secret_again_and_again_has_few_cas_trusted_and_not_for_long() {
    let mut world = World::settled(1, &[false], &timing());
    let own = authorities(&world).current.unwrap().certificate;
    for number in 100..120 {
        edit(&mut world, number);
        look(&mut world);
        assert!(authorities(&world).retiring.len() <= MOST_BLIND);
        let carried = world.targets[0].bundle.as_ref().unwrap();
        assert!(carried.contains(&own) && carried.iter().count() <= MOST_BLIND + 2);
        let leaf = world.serving.as_ref().unwrap().leaf.unwrap();
        assert!(leaf.is_signed_by(&own), "it is issued again");
        assert!(world.is_trusted());
    }
    assert_eq!(authorities(&world).retiring.len(), MOST_BLIND);
    world.now = timing().surely_over(world.now + timing().leaf_life) + HOUR;
    look(&mut world);
    assert!(authorities(&world).retiring.is_empty());
    assert!(authorities(&world).adopted.is_empty());
}

/// As long as somebody is seen to serve what an adopted CA signed, calls to it succeed.
#[test]
fn what_is_seen_of_an_adopted_ca_holds_it_longer() {
    let mut world = World::settled(1, &[true], &timing());
    edit(&mut world, 100);
    world.reload(0);
    look(&mut world);
    assert_eq!(authorities(&world).retiring.len(), 1);
    world.now = timing().surely_over(world.now + timing().leaf_life) - HOUR;
    look(&mut world);
    assert_eq!(authorities(&world).retiring.len(), 1);
    assert!(world.is_trusted());
}
