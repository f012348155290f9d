//! A cluster in miniature for tests: it executes steps as the API server would, and lags as kubelets and servers do.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash, Hasher},
};

use jiff::{SignedDuration, Timestamp};
use windlass_object::ObjectKey;

use crate::rotation::{
    CaChange, CaState, Chain, ClockReading, KeyId, Leaf, Mark, Observation, ObservedEndpoint,
    ObservedService, ObservedWorkload, Publication, PublishedSecret, RotationPlan, Step, Timing, Trust,
    TrustSet, Versioned, has_regressed, plan, repairs,
    tests::lag::{Pod, Port, Stage, WebhookConfiguration},
};

pub(super) use super::numbered::{Numbered, certificate};

/// The steady clock goes no further than this many seconds before an event is just long ago.
const LONG_AGO: i64 = 3;

/// How many seconds prompt servers take to read their certificate again.
const RELOAD: i64 = 2;

/// What an operator does not see or heed, to show that it has to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Overlooked {
    /// That an endpoint could not be dialled.
    Unobservable,
    /// Pods that are not among the endpoints yet.
    StartingPods,
    /// That it leads only since the other does not: a standby that has been up for long.
    Leadership,
    /// That an endpoint still serves what was replaced.
    Served,
    /// That a pod has another port.
    Ports,
    /// That a target had lost the next CA.
    Regression,
}

/// Everything that exists.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    /// What the operator believes to be the time.
    pub(super) now: Timestamp,
    /// How far that is ahead of the true time.
    pub(super) skew: SignedDuration,
    pub(super) overlooked: Option<Overlooked>,
    /// The operator's steady clock, in seconds.
    pub(super) uptime: i64,
    /// Which process the operator is.
    pub(super) run: u64,
    /// When the operator last saw that the next CA was lost somewhere.
    pub(super) regressed: Option<Mark>,
    pub(super) authorities: Option<CaState>,
    pub(super) serving: Option<PublishedSecret>,
    /// How often others wrote the serving Secret.
    pub(super) touches: u8,
    /// What the serving Secret held before its leaf changed last.
    pub(super) served_before: Option<PublishedSecret>,
    /// For how many seconds a pod that starts may still be given that.
    pub(super) outdated: i64,
    /// Whether servers read a certificate within `reload`, so that nothing ever fails, not even in an emergency.
    pub(super) prompt: bool,
    /// For how many seconds they may go on with what they have.
    unread: i64,
    pub(super) targets: Vec<WebhookConfiguration>,
    /// Kinds of targets that cannot be listed.
    pub(super) unlisted: Vec<String>,
    pub(super) pods: Vec<Pod>,
    pub(super) workloads: Vec<ObservedWorkload>,
    pub(super) request: Option<String>,
    /// How many certificates were made.
    pub(super) issued: u8,
    /// Keys whose certificates nobody has to verify any more.
    pub(super) compromised: BTreeSet<KeyId>,
    /// A step that must never be: what it wrote was empty or had ended.
    pub(super) bad_write: bool,
}

/// A step, and what the operator had read of its target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Intent {
    pub(super) step: Step,
    read: Option<TrustSet>,
}

/// Durations in seconds that a test can step through one by one.
pub(super) fn timing() -> Timing {
    Timing {
        trust: SignedDuration::from_secs(1),
        overlap: SignedDuration::from_secs(1),
        reload: SignedDuration::from_secs(RELOAD),
        ..Timing::default()
    }
}

/// 2026-01-01.
pub(super) fn new_year() -> Timestamp {
    Timestamp::from_second(1_767_225_600).unwrap()
}

/// One target, and pods of two ports each, of which the operator can dial these.
pub(super) fn with_ports(observable: &[(bool, bool)]) -> World {
    let first: Vec<_> = observable.iter().map(|(first, _)| *first).collect();
    let mut world = World::settled(1, &first, &timing());
    for (pod, (_, observable)) in world.pods.iter_mut().zip(observable) {
        pod.second = Some(Port {
            chain: pod.chain,
            observable: *observable,
        });
    }
    world
}

// === impl World ===

impl World {
    /// Nothing but targets, and pods that wait for their certificate.
    pub(super) fn new(targets: usize, pods: &[bool]) -> Self {
        Self {
            now: new_year(),
            skew: SignedDuration::ZERO,
            overlooked: None,
            uptime: 0,
            run: 1,
            regressed: None,
            authorities: None,
            serving: None,
            touches: 0,
            served_before: None,
            outdated: 0,
            prompt: false,
            unread: 0,
            targets: vec![WebhookConfiguration::default(); targets],
            unlisted: Vec::new(),
            pods: pods
                .iter()
                .map(|observable| Pod::new(None, Stage::Ready, *observable))
                .collect(),
            workloads: Vec::new(),
            request: None,
            issued: 0,
            compromised: BTreeSet::new(),
            bad_write: false,
        }
    }

    /// The same, after the operator had all the time it needs.
    pub(super) fn settled(targets: usize, pods: &[bool], timing: &Timing) -> Self {
        let mut world = Self::new(targets, pods);
        assert!(world.settle(timing), "{world:#?}");
        for target in &mut world.targets {
            target.before.clone_from(&target.bundle);
        }
        world
    }

    pub(super) fn observe(&self) -> Observation {
        Observation {
            clock: ClockReading {
                now: self.now,
                mark: self.mark(),
            },
            authorities: self.authorities.as_ref().map(|authorities| Versioned {
                version: version(authorities),
                content: authorities.clone(),
            }),
            serving: self.serving.as_ref().map(|serving| Versioned {
                version: self.serving_version(serving),
                content: serving.clone(),
            }),
            targets: (0..)
                .zip(&self.targets)
                .map(|(index, target)| target.observe(index))
                .collect(),
            refused_for: None,
            unlisted: self.unlisted.clone(),
            service: ObservedService {
                name: "hook".to_owned(),
                exists: true,
                starting: Some(self.starting()),
            },
            regressed: self.regressed,
            endpoints: self
                .pods
                .iter()
                .filter(|pod| pod.stage != Stage::Created && pod.chain.is_some())
                .enumerate()
                .map(|(index, pod)| self.dial(index, *pod))
                .collect(),
            workloads: self.workloads.clone(),
            request: self.request.clone(),
        }
    }

    fn starting(&self) -> usize {
        let starting = |pod: &&Pod| pod.stage == Stage::Created && pod.chain.is_some();
        match self.overlooked {
            Some(Overlooked::StartingPods) => 0,
            _ => self.pods.iter().filter(starting).count(),
        }
    }

    fn dial(&self, index: usize, pod: Pod) -> ObservedEndpoint {
        let endpoint = pod.observe(index);
        match self.overlooked {
            Some(Overlooked::Unobservable) => ObservedEndpoint {
                unobservable: None,
                ..endpoint
            },
            Some(Overlooked::Served) => ObservedEndpoint {
                chains: self.served().into_iter().collect(),
                ..endpoint
            },
            Some(Overlooked::Ports) => Pod { second: None, ..pod }.observe(index),
            _ => endpoint,
        }
    }

    pub(super) fn plan(&self, timing: &Timing) -> RotationPlan {
        plan(&self.observe(), timing)
    }

    /// What the operator sets out to do now.
    pub(super) fn intents(&mut self, timing: &Timing) -> Vec<Intent> {
        self.notice(timing);
        self.read(self.plan(timing).steps)
    }

    /// What it sets out to do before it knows what endpoints serve.
    pub(super) fn repairs(&mut self, timing: &Timing) -> Vec<Intent> {
        self.notice(timing);
        let observation = Observation {
            endpoints: Vec::new(),
            ..self.observe()
        };
        self.read(repairs(&observation, timing))
    }

    fn notice(&mut self, timing: &Timing) {
        let is_overlooked = self.overlooked == Some(Overlooked::Regression);
        if !is_overlooked && has_regressed(&self.observe(), timing) {
            self.regressed = Some(self.mark());
        }
    }

    fn read(&self, steps: Vec<Step>) -> Vec<Intent> {
        steps
            .into_iter()
            .map(|step| Intent {
                read: match &step {
                    Step::InjectTarget { target, .. } => self.targets[index(target)].bundle.clone(),
                    _ => None,
                },
                step,
            })
            .collect()
    }

    /// Executes a step, unless what it replaces has changed.
    pub(super) fn execute(&mut self, intent: &Intent) {
        match &intent.step {
            Step::ChangeAuthorities { replacing, change } => {
                if *replacing == self.authorities.as_ref().map(version) {
                    self.change(change);
                }
            }
            Step::PublishServing(publication) => {
                if publication.replacing == self.serving.as_ref().map(|serving| self.serving_version(serving))
                {
                    self.publish(publication);
                }
            }
            Step::InjectTarget { target, bundle } => {
                self.bad_write |= bundle.is_empty() || self.has_ended(bundle);
                let target = &mut self.targets[index(target)];
                if target.bundle == intent.read {
                    target.write(bundle);
                }
            }
            Step::RestartRollout { workload, leaf } => {
                let mut workloads = self.workloads.iter_mut();
                let workload = workloads.find(|known| known.id == *workload).unwrap();
                workload.restarted_for = Some(*leaf);
            }
        }
    }

    /// Lets the operator, the kubelets, the servers and the API servers do their work until nothing is left to do.
    /// Whether it came to that.
    pub(super) fn settle(&mut self, timing: &Timing) -> bool {
        for _ in 0..60 {
            let plan = self.plan(timing);
            let waits = plan.wake_up.as_secs() <= LONG_AGO;
            if plan.steps.is_empty() && plan.is_carried_out && !waits {
                return true;
            }
            for intent in self.intents(timing) {
                self.execute(&intent);
            }
            for target in &mut self.targets {
                target.propagate();
            }
            for index in 0..self.pods.len() {
                self.advance(index);
                self.reload(index);
                self.reload_second(index);
            }
            self.tick();
        }
        false
    }

    /// One second.
    pub(super) fn tick(&mut self) {
        self.uptime += 1;
        self.outdated = (self.outdated - 1).max(0);
        self.unread = (self.unread - 1).max(0);
        self.forget_the_past();
    }

    /// The operator's process ends, and another takes over.
    pub(super) fn restart_operator(&mut self) {
        self.uptime = match self.overlooked {
            Some(Overlooked::Leadership) => LONG_AGO,
            _ => 0,
        };
        self.run = 2;
        self.regressed = None;
        self.forget_the_past();
    }

    /// Whether a second may pass: no API server lags longer than the timing says. Servers may lag for ever, unless they
    /// are prompt.
    pub(super) fn may_tick(&self) -> bool {
        let mut targets = self.targets.iter();
        let served = self.served();
        let mut chains = self.pods.iter().flat_map(|pod| pod.chains());
        let is_read = !self.prompt || self.unread != 1 || chains.all(|chain| Some(chain) == served);
        is_read && targets.all(|target| target.bundle == target.effective)
    }

    /// A pod is created, and given what is in the Secret or, shortly after that changed, what was.
    pub(super) fn start_pod(&mut self, observable: bool, outdated: bool) {
        let before = self.served_before.as_ref().and_then(PublishedSecret::chain);
        let chain = if outdated { before } else { self.served() };
        self.pods.push(Pod::new(chain, Stage::Created, observable));
    }

    /// The pod reads the Secret, if it can.
    pub(super) fn reload(&mut self, pod: usize) {
        if let Some(chain) = self.served() {
            self.pods[pod].chain = Some(chain);
        }
    }

    /// So does whatever serves its other port.
    pub(super) fn reload_second(&mut self, pod: usize) {
        let chain = self.served();
        if let Some(port) = &mut self.pods[pod].second {
            port.chain = chain.or(port.chain);
        }
    }

    /// The pod gets on with its start.
    pub(super) fn advance(&mut self, pod: usize) {
        let pod = &mut self.pods[pod];
        pod.stage = match pod.stage {
            Stage::Created => Stage::Starting,
            Stage::Starting | Stage::Ready => Stage::Ready,
        };
    }

    /// What a pod that reads the Secret comes to serve.
    pub(super) fn served(&self) -> Option<Chain> {
        self.serving.as_ref()?.chain()
    }

    /// Equal contents have equal versions, which makes fewer states and hides nothing, unless somebody else wrote.
    fn serving_version(&self, serving: &PublishedSecret) -> String {
        version(&(serving, self.touches))
    }

    fn mark(&self) -> Mark {
        Mark {
            run: self.run,
            uptime: SignedDuration::from_secs(self.uptime),
        }
    }

    fn has_ended(&self, bundle: &TrustSet) -> bool {
        bundle
            .iter()
            .any(|authority| authority.validity.not_after < self.now)
    }

    fn change(&mut self, change: &CaChange) {
        let mut issuer = Numbered(self.issued);
        let before = self.authorities.take().unwrap_or_default();
        let Ok(after) = before.after(change, &mut issuer);
        self.issued = issuer.0;
        self.compromised.extend(&after.distrusted);
        self.authorities = Some(after);
    }

    fn publish(&mut self, publication: &Publication) {
        let before = self.serving.take();
        let leaf = match publication.leaf {
            Leaf::Keep => before.as_ref().and_then(|serving| serving.leaf),
            Leaf::Issue { by, validity } => {
                self.served_before.clone_from(&before);
                self.outdated = 1;
                self.unread = RELOAD;
                self.issued += 1;
                Some(certificate(self.issued, None, Some(by), validity))
            }
        };
        self.bad_write |= publication.bundle.is_empty()
            || self.has_ended(&publication.bundle)
            || publication.leaf != Leaf::Keep && leaf.is_none_or(|leaf| leaf.validity.not_after < self.now);
        self.serving = Some(PublishedSecret {
            leaf,
            as_asked: true,
            cross: publication.cross,
            bundle: Some(publication.bundle.clone()),
            authority: publication.authority.map(|authority| authority.fingerprint),
        });
    }

    /// Moments that are long ago become the same moment, so that equal situations are equal states.
    fn forget_the_past(&mut self) {
        let clock = ClockReading {
            now: self.now,
            mark: self.mark(),
        };
        let uptime = self.uptime.min(LONG_AGO);
        let forget = |mark: &mut Mark| {
            let elapsed = clock.since(mark).as_secs().min(uptime);
            *mark = if mark.run == clock.mark.run {
                Mark {
                    run: 1,
                    uptime: SignedDuration::from_secs(uptime - elapsed),
                }
            } else {
                Mark {
                    run: 0,
                    uptime: SignedDuration::ZERO,
                }
            };
        };
        // A wait that is over for good is none.
        let is_over = |mark: &Mark| clock.since(mark).as_secs() >= LONG_AGO;
        self.regressed = self.regressed.filter(|mark| !is_over(mark));
        self.regressed.iter_mut().for_each(forget);
        if let Some(authorities) = &mut self.authorities {
            if let Trust::Known(mark) = &mut authorities.trust {
                forget(mark);
            }
            authorities
                .published
                .iter_mut()
                .for_each(|published| forget(&mut published.at));
        }
        self.uptime = uptime;
        self.run = 1;
    }
}

fn version<T: Hash>(content: &T) -> String {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish().to_string()
}

fn index(target: &ObjectKey) -> usize {
    target.name.parse().unwrap()
}
