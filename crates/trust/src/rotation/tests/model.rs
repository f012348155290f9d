//! A model check: every interleaving of steps, crashes, lag, foreign edits and clock jumps with the real
//! [`plan`].
//!
//! Each scenario allows a few disturbances. Everything else may happen at any time, in any order, or not at
//! all.
//!
//! [`plan`]: crate::rotation::plan

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Instant,
};

use jiff::SignedDuration;
use stateright::{Checker, Model, Property};

use crate::rotation::{
    PublishedSecret, Step, Timing,
    endpoints::MAX_RETIRING,
    tests::{
        DAY,
        lag::{Stage, WebhookConfiguration},
        words::disagreement,
        world::{self, Intent, World},
    },
};

/// Must be reachable, so that the other properties are not checked in a world where nothing happens.
const SOMETIMES: &str = "a rotation ends";

/// Must hold in every state.
pub(super) const TRUSTED: &str = "served certificates are trusted";

/// One state of this many is continued until nothing is left to do.
const SAMPLE: u64 = 199;

/// The possible disturbances, and how often each may occur.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Chances {
    /// The operator crashes and another one takes over.
    pub(super) crashes: u8,
    /// The operator is partitioned and another one takes over; late writes of the first may still arrive.
    pub(super) failovers: u8,
    /// A tool restores a previous bundle of a target.
    pub(super) regressions: u8,
    /// A target loses its bundle.
    pub(super) emptyings: u8,
    /// The target with the highest index starts or stops rejecting writes.
    pub(super) refusals: u8,
    /// The serving Secret loses its leaf, is deleted, or gets its previous contents.
    pub(super) edits: u8,
    /// The CA Secret is deleted.
    pub(super) losses: u8,
    /// The operator decides on repairs outside its plan, and writes them any time later.
    pub(super) repairs: u8,
    /// A pod starts.
    pub(super) starts: u8,
    /// Three days pass.
    pub(super) days: u8,
    /// The wall clock jumps from right to wrong or back.
    pub(super) jumps: u8,
    /// Values of the annotation, last first.
    pub(super) requests: Vec<&'static str>,
}

/// An initial state and possible disturbances.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) start: World,
    pub(super) chances: Chances,
    pub(super) timing: Timing,
    /// How far the wall clock jumps.
    pub(super) jump: SignedDuration,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) world: World,
    chances: Chances,
    /// Planned steps that are not executed yet.
    intents: Vec<Intent>,
    /// Repairs outside the plan that are not executed yet.
    repairs: Vec<Intent>,
    /// Planned steps of a partitioned operator.
    stray: Vec<Intent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Action {
    Plan,
    Execute(usize),
    ExecuteStray(usize),
    SetOutToRepair,
    Repair(usize),
    Crash,
    FailOver,
    Tick,
    Propagate(usize),
    Reload(usize),
    ReloadSecond(usize),
    Advance(usize),
    StartPod,
    StartPodOnOutdated,
    Regress(usize),
    Empty(usize),
    PutBack(usize),
    ToggleRefusal,
    LoseLeaf,
    DeleteServing,
    RestoreServing,
    DeleteAuthorities,
    Request,
    NextDay,
    Jump(i8),
}

impl Scenario {
    pub(super) fn new(name: &'static str, start: World, chances: Chances) -> Self {
        Self {
            name,
            start,
            chances,
            timing: world::timing(),
            jump: DAY,
        }
    }

    /// Visits every reachable state, and describes the path to the first one that violates a property.
    pub(super) fn check(self) -> Result<(), String> {
        let (name, timing) = (self.name, self.timing.clone());
        let begin = Instant::now();
        let checker = self.checker().spawn_bfs().join();
        println!(
            "{name}: {} states, {} of them different, {} steps deep, {:.1} s",
            checker.state_count(),
            checker.unique_state_count(),
            checker.max_depth(),
            begin.elapsed().as_secs_f32(),
        );
        let discoveries = checker.discoveries();
        assert!(!discoveries.is_empty(), "{name}: nothing happens");
        match discoveries
            .into_iter()
            .find(|(property, _)| *property != SOMETIMES)
        {
            None => Ok(()),
            Some((property, path)) => {
                let steps = path.into_vec();
                let story = steps
                    .iter()
                    .filter_map(|(state, action)| describe_action(state, *action.as_ref()?));
                let mut story: Vec<_> = story.collect();
                let last = steps.last().map(|(state, _)| state.world.plan(&timing));
                story.extend(last.as_ref().and_then(disagreement));
                Err(format!(
                    "{name}: {property} does not hold after\n{}",
                    story.join("\n")
                ))
            }
        }
    }

    /// Reports whether the rotation completes from this state without further disturbances.
    pub(super) fn settles(&self, state: &State) -> bool {
        let mut world = state.world.clone();
        for target in &mut world.targets {
            target.refuses = false;
        }
        // With this many CAs kept for unobserved servers, the next rotation waits until these are observed or
        // expire.
        if world
            .authorities
            .as_ref()
            .is_some_and(|state| state.retiring.len() >= MAX_RETIRING)
        {
            world.pods.iter_mut().for_each(|pod| pod.observable = true);
        }
        world.settle(&self.timing) && world.is_trusted()
    }

    fn environment_actions(&self, state: &State, actions: &mut Vec<Action>) {
        let world = &state.world;
        let lagging = |(index, target): (usize, &WebhookConfiguration)| {
            (target.bundle != target.effective).then_some(Action::Propagate(index))
        };
        actions.extend(world.targets.iter().enumerate().filter_map(lagging));
        let served = world.serving.as_ref().and_then(PublishedSecret::chain);
        for (index, pod) in world.pods.iter().enumerate() {
            if served.is_some() && pod.chain != served && pod.stage != Stage::Created {
                actions.push(Action::Reload(index));
            }
            let second = pod.second.map(|port| port.chain);
            if served.is_some() && second.is_some_and(|chain| chain != served) && pod.stage != Stage::Created
            {
                actions.push(Action::ReloadSecond(index));
            }
            if pod.stage != Stage::Ready {
                actions.push(Action::Advance(index));
            }
        }
        for (index, target) in world.targets.iter().enumerate() {
            if target.stale.is_some() && target.stale != target.bundle {
                actions.push(Action::PutBack(index));
            }
        }
        if world.may_tick() {
            actions.push(Action::Tick);
        }
    }

    fn disturbances(&self, state: &State, actions: &mut Vec<Action>) {
        let State { world, chances, .. } = state;
        if chances.crashes > 0 {
            actions.push(Action::Crash);
        }
        if chances.failovers > 0 && !state.intents.is_empty() {
            actions.push(Action::FailOver);
        }
        for (index, target) in world.targets.iter().enumerate() {
            if chances.regressions > 0 && target.before != target.bundle {
                actions.push(Action::Regress(index));
            }
            if chances.emptyings > 0 && target.bundle.is_some() {
                actions.push(Action::Empty(index));
            }
        }
        if chances.refusals > 0 {
            actions.push(Action::ToggleRefusal);
        }
        if chances.edits > 0 && world.serving.is_some() {
            actions.extend([Action::LoseLeaf, Action::DeleteServing]);
            // Restoring a certificate of a retired CA cannot be survived: it is trusted nowhere.
            let is_trusted = |serving: &PublishedSecret| {
                let authorities = world.authorities.as_ref();
                serving.leaf.is_some_and(|leaf| {
                    authorities.is_some_and(|authorities| authorities.knows(leaf.issuer_key_id))
                })
            };
            if world.served_before.as_ref().is_some_and(is_trusted) && state.intents.is_empty() {
                actions.push(Action::RestoreServing);
            }
        }
        if chances.losses > 0 && world.authorities.is_some() {
            actions.push(Action::DeleteAuthorities);
        }
        if chances.repairs > 0 && state.repairs.is_empty() {
            actions.push(Action::SetOutToRepair);
        }
        if chances.starts > 0 && world.serving.is_some() {
            actions.push(Action::StartPod);
            if world.outdated > 0 && world.served_before.is_some() {
                actions.push(Action::StartPodOnOutdated);
            }
        }
        if !chances.requests.is_empty() {
            actions.push(Action::Request);
        }
        // No write is delayed for days.
        if chances.days > 0 && state.intents.is_empty() {
            actions.push(Action::NextDay);
        }
        if chances.jumps > 0 {
            let jumps: &[i8] = if world.skew.is_zero() { &[-1, 1] } else { &[0] };
            actions.extend(jumps.iter().map(|skew| Action::Jump(*skew)));
        }
    }
}

impl Model for Scenario {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            world: self.start.clone(),
            chances: self.chances.clone(),
            intents: Vec::new(),
            repairs: Vec::new(),
            stray: Vec::new(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.intents.is_empty() {
            actions.push(Action::Plan);
        }
        actions.extend((0..state.intents.len()).map(Action::Execute));
        actions.extend((0..state.stray.len()).map(Action::ExecuteStray));
        actions.extend((0..state.repairs.len()).map(Action::Repair));
        self.environment_actions(state, actions);
        self.disturbances(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        let State {
            world,
            chances,
            intents,
            repairs,
            stray,
        } = &mut state;
        match action {
            Action::Plan => *intents = world.planned_writes(&self.timing),
            Action::Execute(index) => {
                let intent = intents.remove(index);
                world.execute(&intent);
            }
            Action::ExecuteStray(index) => {
                let intent = stray.remove(index);
                world.execute(&intent);
            }
            Action::SetOutToRepair => {
                *repairs = world.repairs(&self.timing);
                chances.repairs -= u8::from(!repairs.is_empty());
            }
            Action::Repair(index) => {
                let intent = repairs.remove(index);
                world.execute(&intent);
            }
            Action::Crash => {
                chances.crashes -= 1;
                intents.clear();
                repairs.clear();
                world.restart_operator();
            }
            Action::FailOver => {
                chances.failovers -= 1;
                stray.append(intents);
                stray.append(repairs);
                world.restart_operator();
            }
            Action::Tick => world.tick(),
            Action::Propagate(target) => world.targets[target].propagate(),
            Action::Reload(pod) => world.reload(pod),
            Action::ReloadSecond(pod) => world.reload_second(pod),
            Action::Advance(pod) => world.advance(pod),
            Action::StartPod => {
                chances.starts -= 1;
                world.serving.as_ref()?.chain()?;
                world.start_pod(true, false);
            }
            Action::StartPodOnOutdated => {
                chances.starts -= 1;
                world.start_pod(true, true);
            }
            Action::PutBack(target) => {
                let target = &mut world.targets[target];
                target.bundle.clone_from(&target.stale);
            }
            Action::Regress(target) => {
                chances.regressions -= 1;
                let target = &mut world.targets[target];
                target.bundle.clone_from(&target.before);
            }
            Action::Empty(target) => {
                chances.emptyings -= 1;
                world.targets[target].bundle = None;
            }
            Action::ToggleRefusal => {
                chances.refusals -= 1;
                let target = world.targets.last_mut()?;
                target.refuses = !target.refuses;
            }
            Action::LoseLeaf => {
                chances.edits -= 1;
                world.touches += 1;
                world.serving.as_mut()?.leaf = None;
            }
            Action::DeleteServing => {
                chances.edits -= 1;
                world.touches += 1;
                world.serving = None;
            }
            Action::RestoreServing => {
                chances.edits -= 1;
                world.touches += 1;
                world.serving = world.served_before.take();
            }
            Action::DeleteAuthorities => {
                chances.losses -= 1;
                world.authorities = None;
            }
            Action::Request => world.request = chances.requests.pop().map(str::to_owned),
            Action::NextDay => {
                chances.days -= 1;
                world.now += SignedDuration::from_hours(72);
            }
            Action::Jump(skew) => {
                chances.jumps -= 1;
                let skew = self.jump * i32::from(skew);
                world.now += skew - world.skew;
                world.skew = skew;
            }
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(TRUSTED, |_, state: &State| state.world.is_trusted()),
            Property::always("no empty or expired bundle is written", |_, state: &State| {
                !state.world.bad_write
            }),
            Property::always(
                "a change of the CA Secret is the only step",
                |_, state: &State| {
                    let is_change = |intent: &Intent| matches!(intent.step, Step::ChangeAuthorities { .. });
                    state.intents.len() < 2 || !state.intents.iter().any(is_change)
                },
            ),
            Property::always("messages agree with the counts", |model: &Self, state: &State| {
                !state.intents.is_empty() || disagreement(&state.world.plan(&model.timing)).is_none()
            }),
            Property::always("nothing is stuck", |model: &Self, state: &State| {
                let mut hasher = DefaultHasher::new();
                state.hash(&mut hasher);
                !hasher.finish().is_multiple_of(SAMPLE) || model.settles(state)
            }),
            Property::sometimes(SOMETIMES, |model: &Self, state: &State| {
                let generation = |world: &World| {
                    let authorities = world.authorities.as_ref()?;
                    Some(authorities.current?.generation)
                };
                generation(&state.world) > generation(&model.start)
                    && state.intents.is_empty()
                    && state.world.plan(&model.timing).is_complete
            }),
        ]
    }
}

pub(super) fn describe_action(state: &State, action: Action) -> Option<String> {
    let intent = match action {
        Action::Plan => return None,
        Action::Execute(index) => &state.intents[index],
        Action::ExecuteStray(index) => &state.stray[index],
        Action::Repair(index) => &state.repairs[index],
        other => return Some(format!("{other:?}")),
    };
    Some(format!("{action:?}: {}", intent.step))
}
