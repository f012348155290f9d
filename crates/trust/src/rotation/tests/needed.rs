//! Each wait, hold and observation is necessary: without it, the model check finds a failure.

use jiff::SignedDuration;

use crate::rotation::{
    Timing,
    tests::{
        exhaustive::rotations,
        model::{Chances, Scenario, TRUSTED},
        world::{self, Ignored, World},
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
fn fails_without_the_wait_for_api_servers() {
    // With a cross certificate, only the wait for servers separates a retired CA from its certificates.
    let scenario = Scenario::new("no trust", one_pod(), rotations(&["ca:compromised-all"]));
    let timing = Timing {
        trust: SignedDuration::ZERO,
        ..world::timing()
    };
    fails(Scenario { timing, ..scenario });
}

#[test]
fn fails_without_the_wait_for_kubelets() {
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

/// In an emergency only this wait protects servers that are about to reload. Before a restart it only spares
/// servers that reload on their own, which costs no request.
#[test]
fn fails_without_the_wait_for_servers_in_an_emergency() {
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
fn fails_without_backdated_certificates() {
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
fn fails_with_unobserved_endpoints() {
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
    let ignored = [
        ("unobservable", Ignored::Unobservable, unseen(), one()),
        ("starting pods", Ignored::StartingPods, one_pod(), starts),
        ("leadership", Ignored::Leadership, one_pod(), crashes),
        ("served", Ignored::Served, one_pod(), one()),
        ("ports", Ignored::Ports, world::with_ports(&[(true, true)]), one()),
        ("regression", Ignored::Regression, one_pod(), regressions),
    ];
    for (name, ignored, mut world, chances) in ignored {
        world.ignored = Some(ignored);
        fails(Scenario::new(name, world, chances));
    }
}
