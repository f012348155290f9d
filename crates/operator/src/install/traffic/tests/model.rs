//! The operator walks the pipeline of an install, as `BundleReconciler::install` does, with the same decisions.

use serde_json::{Value, json};

use super::{
    explorer::explore,
    world::{Hold, Pods, Target, World},
};
use crate::install::{
    canary::stamp,
    traffic::{Color, frozen, held, is_rolling, keeps_old_pods, leaves_as_is},
};

/// A wait of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// A revision that webhooks call already comes to its end before another one begins.
    Begun,
    /// What the watches show of who is called, and of the Deployment, is not believed when that is asked.
    FreshBegun,
    /// Pods of a revision that webhooks call already are left as they are while these go back to another one.
    PodsOfNext,
    /// What the watches show of the Deployment is not believed when it is left as it is.
    FreshTemplate,
    /// Old pods are kept until nobody calls them.
    OldPodsAreCalled,
    /// What the watches show of who is called is not believed when old pods are let go.
    FreshCalls,
    /// Old pods are kept until API servers have observed that nobody calls them.
    Observation,
    /// Webhooks swing when the new pods are ready.
    NewPods,
    /// Webhooks swing when nobody's change of the template can end these pods.
    Frozen,
    /// Webhooks swing when the Service leads to the new pods.
    Service,
    /// What the watches show of that Service is not believed.
    FreshService,
    /// A Service that is called, as the API server has it, is not changed, nor is one that API servers may not have observed to be
    /// called no more.
    Callers,
}

const WAITS: [Wait; 12] = [
    Wait::Begun,
    Wait::FreshBegun,
    Wait::PodsOfNext,
    Wait::FreshTemplate,
    Wait::OldPodsAreCalled,
    Wait::FreshCalls,
    Wait::Observation,
    Wait::NewPods,
    Wait::Frozen,
    Wait::Service,
    Wait::FreshService,
    Wait::Callers,
];

/// A Deployment of a revision.
fn deployment(revision: u8, hold: Hold) -> Value {
    let mut deployment = json!({
        "metadata": {"name": "d"}, "spec": {"template": {"spec": {"revision": revision}}},
    });
    stamp(&mut deployment);
    match hold {
        Hold::Free => deployment,
        Hold::Held => held(&deployment),
        Hold::Frozen => frozen(&deployment, "s"),
    }
}

/// The first write of a reconciliation that leaves out the waits in `without`; `None` where there is nothing to do.
fn reconcile(world: &World, without: &[Wait]) -> Option<World> {
    let waits = |wait| !without.contains(&wait);
    let seen = &world.seen;
    let mut next = world.clone();
    let asked = if waits(Wait::FreshBegun) {
        &world.objects
    } else {
        seen
    };
    let begun = seen.deployment.and(asked.deployment).filter(|(revision, hold)| {
        let called = asked.called();
        let is_called = called.iter().any(|color| seen.service(*color) == Some(*revision));
        let goes_back = *hold != Hold::Free && world.has_pods(world.desired);
        *revision != world.desired && is_called && world.is_unfinished(*revision, *hold) && !goes_back
    });
    let desired = match begun {
        Some((_, Hold::Free)) if waits(Wait::Begun) => return None,
        Some((revision, _)) if waits(Wait::Begun) => revision,
        _ => world.desired,
    };
    let target = Color::choose(&seen.pair(desired))?;
    let swings = |live: &Option<Target>| {
        *live
            != Some(Target {
                color: target,
                path: desired,
            })
    };
    let called_elsewhere = seen.called().iter().any(|color| *color != target);
    let live = seen.deployment.map(|(revision, hold)| deployment(revision, hold));
    let plain = deployment(desired, Hold::Free);
    if seen.service(target).is_none() && world.objects.service(target).is_none() {
        next.objects.set_service(target, Some(desired));
        return Some(next);
    }
    let mut keeps = keeps_old_pods(
        &plain,
        live.as_ref(),
        called_elsewhere && waits(Wait::OldPodsAreCalled),
        world.waits() && waits(Wait::Observation),
    );
    let lets_go = !keeps && live.as_ref().is_some_and(|live| is_rolling(&plain, live));
    if lets_go && waits(Wait::FreshCalls) && waits(Wait::OldPodsAreCalled) {
        keeps = world.objects.called().iter().any(|color| *color != target);
    }
    let is_left = |live: Option<&Value>| leaves_as_is(&plain, live, world.has_pods(desired)) && keeps;
    let asked = world
        .objects
        .deployment
        .map(|(revision, hold)| deployment(revision, hold));
    if is_left(live.as_ref()) && !is_left(asked.as_ref()) && waits(Wait::FreshTemplate) {
        return None;
    }
    let is_left = is_left(live.as_ref());
    let is_left = is_left && waits(Wait::PodsOfNext);
    let hold = match seen.deployment {
        _ if !keeps => Hold::Free,
        Some((revision, Hold::Frozen)) if revision == desired => Hold::Frozen,
        _ => Hold::Held,
    };
    if seen.deployment != Some((desired, hold)) && !is_left {
        next.objects.deployment = Some((desired, hold));
        return (next != *world).then_some(next);
    }
    if world.pods[usize::from(desired)] != Pods::Ready && waits(Wait::NewPods) {
        return None;
    }
    if hold == Hold::Held && !is_left && waits(Wait::Frozen) {
        next.objects.deployment = Some((desired, Hold::Frozen));
        return (next != *world).then_some(next);
    }
    if seen.service(target) != Some(desired) && waits(Wait::Service) {
        return point(world, target, desired, &waits);
    }
    let is_led_elsewhere = world.objects.service(target) != Some(desired);
    if let Some(index) = seen.webhooks.iter().position(swings) {
        if is_led_elsewhere && waits(Wait::FreshService) && waits(Wait::Service) {
            return None;
        }
        // The patch tests what is there.
        if world.objects.webhooks[index] != seen.webhooks[index] {
            return None;
        }
        next.objects.webhooks[index] = Some(Target {
            color: target,
            path: desired,
        });
        next.noted = true;
        return Some(next);
    }
    if seen.service(Color::Blue) != Some(desired) {
        return point(world, Color::Blue, desired, &waits);
    }
    next.installed = desired;
    (next != *world).then_some(next)
}

/// Makes a Service lead to the pods of a revision, unless it is called.
fn point(world: &World, color: Color, to: u8, waits: &impl Fn(Wait) -> bool) -> Option<World> {
    let is_called = world.objects.called().contains(&color);
    let leads_elsewhere = world
        .objects
        .service(color)
        .is_some_and(|revision| revision != to);
    if leads_elsewhere && is_called && waits(Wait::Callers) {
        return None;
    }
    if leads_elsewhere && world.waits() && waits(Wait::Callers) {
        return None;
    }
    let mut next = world.clone();
    next.objects.set_service(color, Some(to));
    (next != *world).then_some(next)
}

#[test]
fn no_call_fails_and_every_change_of_the_source_comes_to_its_end() {
    let visited = explore(|world| reconcile(world, &[]));
    println!("{} states", visited.states);
    assert!(
        visited.failure.is_none(),
        "{}",
        visited.failure.unwrap_or_default()
    );
    assert!(visited.stuck.is_none(), "{:?}", visited.stuck);
}

#[test]
fn without_any_of_the_waits_a_call_fails() {
    for wait in WAITS {
        let visited = explore(|world| reconcile(world, &[wait]));
        assert!(
            visited.failure.is_some(),
            "{wait:?} is not needed: {} states",
            visited.states
        );
    }
}
