//! Each wait, each hold and each look is there for a reason: without it, the model check finds what goes wrong.

use jiff::SignedDuration;

use crate::rotation::{
    Timing,
    tests::{
        exhaustive::rotations,
        model::{Chances, Scenario, TRUSTED},
        world::{self, Overlooked, World},
    },
};

fn fails(scenario: Scenario) {
    let name = scenario.name;
    let found = scenario.check();
    assert!(
        found.as_ref().is_err_and(|story| story.contains(TRUSTED)),
        "{name}: {found:?}"
    );
}

fn one_pod() -> World {
    World::settled(1, &[true], &world::timing())
}

#[test]
fn api_servers_are_waited_for() {
    // With a cross certificate, only the wait for servers is between a retired CA and those who rely on it.
    let scenario = Scenario::new("no trust", one_pod(), rotations(&["ca:compromised-all"]));
    let timing = Timing {
        trust: SignedDuration::ZERO,
        ..world::timing()
    };
    fails(Scenario { timing, ..scenario });
}

#[test]
fn kubelets_are_waited_for() {
    let chances = Chances {
        starts: 1,
        ..rotations(&["ca:1"])
    };
    let timing = Timing {
        overlap: SignedDuration::ZERO,
        ..world::timing()
    };
    let scenario = Scenario::new("no overlap", one_pod(), chances);
    fails(Scenario { timing, ..scenario });
}

/// In an emergency nothing else is between the CA and servers that are about to read their certificate. Before a restart
/// the same wait only spares servers that read it by themselves, which costs no request.
#[test]
fn servers_are_waited_for_in_an_emergency() {
    let mut world = one_pod();
    world.prompt = true;
    let timing = Timing {
        reload: SignedDuration::ZERO,
        ..world::timing()
    };
    let scenario = Scenario::new("no reload", world, rotations(&["ca:compromised"]));
    fails(Scenario { timing, ..scenario });
}

#[test]
fn certificates_begin_before_they_are_issued() {
    let chances = Chances {
        jumps: 1,
        ..rotations(&["leaf:1"])
    };
    let timing = Timing {
        clock_tolerance: SignedDuration::from_mins(10),
        ..world::timing()
    };
    let scenario = Scenario::new("no tolerance", one_pod(), chances);
    let jump = SignedDuration::from_mins(40);
    fails(Scenario {
        timing,
        jump,
        ..scenario
    });
}

#[test]
fn everything_is_looked_at() {
    let one = || rotations(&["ca:1"]);
    let unseen = || World::settled(1, &[false], &world::timing());
    let (starts, crashes) = (
        Chances { starts: 1, ..one() },
        Chances {
            crashes: 1,
            ..rotations(&["ca:compromised-all"])
        },
    );
    let regressions = Chances {
        regressions: 1,
        ..rotations(&["ca:compromised-all"])
    };
    let overlooked = [
        ("unobservable", Overlooked::Unobservable, unseen(), one()),
        ("starting pods", Overlooked::StartingPods, one_pod(), starts),
        ("leadership", Overlooked::Leadership, one_pod(), crashes),
        ("served", Overlooked::Served, one_pod(), one()),
        (
            "ports",
            Overlooked::Ports,
            world::with_ports(&[(true, true)]),
            one(),
        ),
        ("regression", Overlooked::Regression, one_pod(), regressions),
    ];
    for (name, overlooked, mut world, chances) in overlooked {
        world.overlooked = Some(overlooked);
        fails(Scenario::new(name, world, chances));
    }
}
