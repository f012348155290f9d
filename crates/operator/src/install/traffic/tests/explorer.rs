//! Visits every state that can be reached.

use std::collections::{HashMap, VecDeque};

use super::world::World;

/// What a search found.
pub(super) struct Visited {
    /// How many states there are.
    pub(super) states: usize,
    /// The shortest way to a call that fails, with the reason.
    pub(super) failure: Option<String>,
    /// A state from which the operator and the world alone do not come to rest as desired.
    pub(super) stuck: Option<World>,
}

/// Visits everything that the `operator`, which does one write at a time, the world and accidents make of an installed revision.
pub(super) fn explore(operator: impl Fn(&World) -> Option<World>) -> Visited {
    let start = World::installed();
    let mut origins: HashMap<World, Option<World>> = [(start.clone(), None)].into();
    let mut queue = VecDeque::from([start]);
    let mut stuck = None;
    while let Some(world) = queue.pop_front() {
        if let Some(problem) = world.failing_call() {
            let failure = Some(format!("{problem}\n{}", way(&origins, &world)));
            return Visited {
                states: origins.len(),
                failure,
                stuck,
            };
        }
        let written = operator(&world);
        let calm: Vec<_> = world.natural_steps().into_iter().chain(written).collect();
        if calm.is_empty() && !world.is_settled() {
            stuck.get_or_insert_with(|| world.clone());
        }
        for next in calm.into_iter().chain(world.accidents()) {
            if !origins.contains_key(&next) {
                origins.insert(next.clone(), Some(world.clone()));
                queue.push_back(next);
            }
        }
    }
    Visited {
        states: origins.len(),
        failure: None,
        stuck,
    }
}

fn way(origins: &HashMap<World, Option<World>>, to: &World) -> String {
    let mut steps = vec![format!("{to:?}")];
    let mut at = to;
    while let Some(Some(before)) = origins.get(at) {
        steps.push(format!("{before:?}"));
        at = before;
    }
    steps.reverse();
    steps.join("\n")
}
