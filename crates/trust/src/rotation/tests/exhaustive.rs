//! Served certificates are trusted and nothing is stuck, in every reachable state and along random paths.

use jiff::SignedDuration;
use proptest::prelude::*;
use stateright::Model;

use crate::rotation::{
    Timing,
    tests::{
        model::{Chances, Scenario, describe_action},
        world::{self, World},
    },
};

pub(super) fn rotations(requests: &[&'static str]) -> Chances {
    Chances {
        requests: requests.to_vec(),
        ..Chances::default()
    }
}

/// Two pods, one of which the operator can reach, and one target.
fn small() -> World {
    World::settled(1, &[true, false], &world::timing())
}

fn holds(scenario: Scenario) {
    if let Err(story) = scenario.check() {
        panic!("{story}");
    }
}

#[test]
fn holds_from_nothing_and_through_a_rotation() {
    holds(Scenario::new(
        "from nothing",
        World::new(2, &[true, false]),
        Chances {
            crashes: 1,
            requests: vec!["ca:1"],
            ..Chances::default()
        },
    ));
}

#[test]
fn holds_through_two_rotations() {
    holds(Scenario::new(
        "two rotations",
        small(),
        rotations(&["ca:2", "ca:1"]),
    ));
}

#[test]
fn holds_with_late_writes_of_a_partitioned_operator() {
    holds(Scenario::new(
        "two operators",
        World::settled(2, &[true], &world::timing()),
        Chances {
            failovers: 1,
            regressions: 1,
            ..rotations(&["ca:1"])
        },
    ));
}

#[test]
fn holds_with_targets_that_regress() {
    holds(Scenario::new(
        "targets that regress",
        small(),
        Chances {
            regressions: 2,
            emptyings: 1,
            ..rotations(&["ca:2", "ca:1"])
        },
    ));
}

#[test]
fn holds_with_immediate_repairs() {
    holds(Scenario::new(
        "repairs outside the plan",
        World::settled(1, &[true], &world::timing()),
        Chances {
            repairs: 1,
            regressions: 1,
            crashes: 1,
            ..rotations(&["ca:1"])
        },
    ));
    holds(Scenario::new(
        "repairs with lost keys",
        World::settled(1, &[false], &world::timing()),
        Chances {
            repairs: 1,
            losses: 1,
            ..rotations(&["ca:1"])
        },
    ));
}

#[test]
fn holds_with_a_target_that_refuses() {
    holds(Scenario::new(
        "a target that rejects writes",
        World::settled(2, &[true], &world::timing()),
        Chances {
            refusals: 2,
            regressions: 1,
            ..rotations(&["ca:2", "ca:1"])
        },
    ));
}

#[test]
fn holds_with_a_serving_secret_that_is_edited() {
    holds(Scenario::new(
        "an edited serving Secret",
        World::settled(1, &[false], &world::timing()),
        Chances {
            edits: 1,
            ..rotations(&["leaf:2", "ca:1"])
        },
    ));
    holds(Scenario::new(
        "a serving Secret that is edited twice",
        World::settled(1, &[false], &world::timing()),
        Chances {
            edits: 2,
            ..rotations(&["ca:1"])
        },
    ));
}

#[test]
fn holds_with_lost_keys() {
    holds(Scenario::new(
        "lost keys",
        small(),
        Chances {
            losses: 1,
            crashes: 1,
            ..rotations(&["ca:1"])
        },
    ));
}

#[test]
fn holds_with_a_pod_that_starts_slowly() {
    holds(Scenario::new(
        "a pod that starts slowly",
        World::settled(1, &[true], &world::timing()),
        Chances {
            starts: 1,
            crashes: 1,
            ..rotations(&["ca:2", "ca:1"])
        },
    ));
}

#[test]
fn holds_with_compromised_keys() {
    holds(Scenario::new(
        "a compromised CA",
        World::settled(1, &[false], &world::timing()),
        Chances {
            crashes: 1,
            ..rotations(&["ca:compromised", "ca:1"])
        },
    ));
    holds(Scenario::new(
        "two compromised CAs",
        small(),
        Chances {
            crashes: 1,
            ..rotations(&["ca:compromised-all"])
        },
    ));
}

#[test]
fn holds_with_a_jumping_wall_clock() {
    let days = |days: i64| SignedDuration::from_hours(24 * days);
    let timing = Timing {
        leaf_life: days(6),
        authority_life: days(12),
        ..world::timing()
    };
    let scenario = Scenario::new(
        "a wall clock that jumps",
        World::settled(1, &[false], &timing),
        Chances {
            days: 4,
            jumps: 2,
            ..Chances::default()
        },
    );
    holds(Scenario { timing, ..scenario });
}

/// An operator whose clock is 40 minutes fast or slow issues no certificate that is not valid yet.
#[test]
fn holds_with_a_wrong_clock_at_issuance() {
    let scenario = Scenario::new(
        "a wrong clock",
        World::settled(1, &[true], &world::timing()),
        Chances {
            jumps: 2,
            ..rotations(&["leaf:2", "ca:1"])
        },
    );
    let jump = SignedDuration::from_mins(40);
    holds(Scenario { jump, ..scenario });
}

#[test]
fn holds_with_several_ports_of_a_pod() {
    for (name, observable) in [("another port", true), ("a hidden port", false)] {
        let world = world::with_ports(&[(true, observable)]);
        let chances = Chances {
            crashes: 1,
            ..rotations(&["ca:2", "ca:1"])
        };
        holds(Scenario::new(name, world, chances));
    }
}

#[test]
fn holds_when_both_secrets_are_lost() {
    holds(Scenario::new(
        "both Secrets lost",
        World::settled(1, &[false], &world::timing()),
        Chances {
            losses: 1,
            edits: 1,
            ..rotations(&["ca:1"])
        },
    ));
}

#[test]
fn holds_with_a_tool_that_keeps_restoring_a_stale_bundle() {
    let requests: [(_, &[_]); 4] = [
        ("a stale bundle", &["ca:1"]),
        ("a stale bundle, twice", &["ca:2", "ca:1"]),
        ("a stale bundle in an emergency", &["ca:compromised"]),
        ("a stale bundle of compromised CAs", &["ca:compromised-all"]),
    ];
    for (name, requests) in requests {
        let mut world = World::settled(1, &[true], &world::timing());
        let target = &mut world.targets[0];
        target.stale.clone_from(&target.bundle);
        holds(Scenario::new(name, world, rotations(requests)));
    }
}

/// Servers that reload in time keep serving through an emergency.
#[test]
fn holds_with_compromised_keys_and_prompt_servers() {
    for request in ["ca:compromised", "ca:compromised-all"] {
        let mut world = World::settled(1, &[true], &world::timing());
        world.prompt = true;
        let chances = Chances {
            crashes: 1,
            ..rotations(&[request])
        };
        holds(Scenario::new("prompt servers", world, chances));
    }
}

proptest! {
    /// Deeper than the exhaustive checks: all disturbances combined, along random paths.
    #[test]
    fn holds_along_random_paths(
        choices in prop::collection::vec(any::<prop::sample::Index>(), 300),
        with_losses in any::<bool>(),
        targets in 1_usize..4,
        pods in prop::collection::vec(any::<bool>(), 1..4),
    ) {
        let requests = vec!["ca:5", "leaf:4", "ca:3", "leaf:2", "ca:1"];
        let chances = if with_losses {
            Chances { crashes: 3, failovers: 2, losses: 2, repairs: 9, starts: 2, jumps: 6, requests, ..Chances::default() }
        } else {
            Chances {
                crashes: 3,
                failovers: 2,
                regressions: 5,
                emptyings: 3,
                refusals: 4,
                edits: 3,
                repairs: 9,
                starts: 2,
                jumps: 6,
                requests,
                ..Chances::default()
            }
        };
        let scenario = Scenario::new("random paths", World::settled(targets, &pods, &world::timing()), chances);
        let mut state = scenario.init_states().remove(0);
        let mut story = Vec::new();
        for choice in choices {
            let mut actions = Vec::new();
            scenario.actions(&state, &mut actions);
            let action = *choice.get(&actions);
            story.extend(describe_action(&state, action));
            if let Some(next) = scenario.next_state(&state, action) {
                state = next;
            }
            prop_assert!(state.world.is_trusted(), "untrusted after\n{}", story.join("\n"));
            prop_assert!(!state.world.bad_write, "bad write after\n{}", story.join("\n"));
        }
        prop_assert!(scenario.settles(&state), "stuck after\n{}", story.join("\n"));
    }
}
