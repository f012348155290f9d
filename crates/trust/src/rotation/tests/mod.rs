//! Tests of the plan: single situations, and a model check of all interleavings.

mod adoption;
mod clients;
mod conditions;
mod endpoints;
mod exhaustive;
mod faults;
mod lag;
mod model;
mod needed;
mod numbered;
mod observations;
mod renewal;
mod requests;
mod targets;
mod words;
mod world;

use jiff::SignedDuration;

use crate::rotation::{CaChange, RotationPhase, RotationPlan, Step};

use self::world::{World, timing};

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);

fn settled() -> World {
    World::settled(2, &[true], &timing())
}

fn changes(plan: &RotationPlan) -> Option<&CaChange> {
    match plan.steps.as_slice() {
        [Step::ChangeAuthorities { change, .. }] => Some(change),
        _ => None,
    }
}

fn step(world: &mut World) -> RotationPlan {
    let plan = world.plan(&timing());
    for intent in world.planned_writes(&timing()) {
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

/// Executes plans until one is in that phase.
fn run_until(world: &mut World, phase: RotationPhase) {
    for _ in 0..20 {
        if step(world).phase == phase {
            return;
        }
    }
    panic!("never {phase:?}: {world:#?}");
}
