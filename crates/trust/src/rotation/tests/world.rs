//! A small simulated cluster: it executes steps as the API server does, and lags as kubelets and servers do.

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

/// Seconds after which an event counts as long ago on the monotonic clock.
const LONG_AGO: i64 = 3;

/// How many seconds prompt servers take to reload.
const RELOAD: i64 = 2;

/// What an operator ignores, to show that it must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ignored {
    /// An endpoint that could not be reached.
    Unobservable,
    /// Pods that are not endpoints yet.
    StartingPods,
    /// The operator became the leader only now, after a long time on standby.
    Leadership,
    /// An endpoint that still serves a replaced certificate.
    Served,
    /// Another port of a pod.
    Ports,
    /// A target that lost the next CA.
    Regression,
}

/// The simulated cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    /// The operator's wall clock.
    pub(super) now: Timestamp,
    /// How far that clock is ahead of the true time.
    pub(super) skew: SignedDuration,
    pub(super) ignored: Option<Ignored>,
    /// The operator's monotonic clock, in seconds.
    pub(super) uptime: i64,
    /// Number of the operator's process.
    pub(super) run: u64,
    /// When the operator last saw a target lose the next CA.
    pub(super) regressed: Option<Mark>,
    pub(super) authorities: Option<CaState>,
    pub(super) serving: Option<PublishedSecret>,
    /// How often other clients wrote the serving Secret.
    pub(super) touches: u8,
    /// The contents of the serving Secret before its leaf last changed.
    pub(super) served_before: Option<PublishedSecret>,
    /// For how many seconds a starting pod may still mount the previous contents.
    pub(super) outdated: i64,
    /// Whether servers reload within `reload`, so that calls never fail, not even in an emergency.
    pub(super) prompt: bool,
    /// For how many seconds servers may still serve their present certificate.
    unread: i64,
    pub(super) targets: Vec<WebhookConfiguration>,
    /// Kinds of targets that cannot be listed.
    pub(super) unlisted: Vec<String>,
    pub(super) pods: Vec<Pod>,
    pub(super) workloads: Vec<ObservedWorkload>,
    pub(super) request: Option<String>,
    /// How many certificates were issued.
    pub(super) issued: u8,
    /// Keys whose certificates clients need not verify.
    pub(super) compromised: BTreeSet<KeyId>,
    /// Whether an invalid write happened: it was empty or contained an expired certificate.
    pub(super) bad_write: bool,
}

/// A step, and what the operator had read of its target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Intent {
    pub(super) step: Step,
    read: Option<TrustSet>,
}

/// Durations in seconds, so that a test can step through each one.
pub(super) fn timing() -> Timing {
    Timing {
        trust: SignedDuration::from_secs(1),
        overlap: SignedDuration::from_secs(1),
        reload: SignedDuration::from_secs(RELOAD),
        ..Timing::default()
    }
}

pub(super) fn start_of_2026() -> Timestamp {
    Timestamp::from_second(1_767_225_600).unwrap()
}

/// One target, and pods with two ports each; `observable` says which ports the operator can reach.
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

impl World {
    /// Only targets, and pods without a certificate.
    pub(super) fn new(targets: usize, pods: &[bool]) -> Self {
        Self {
            now: start_of_2026(),
            skew: SignedDuration::ZERO,
            ignored: None,
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

    /// Returns the world after the operator had all the time that it needs.
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
        match self.ignored {
            Some(Ignored::StartingPods) => 0,
            _ => self.pods.iter().filter(starting).count(),
        }
    }

    fn dial(&self, index: usize, pod: Pod) -> ObservedEndpoint {
        let endpoint = pod.observe(index);
        match self.ignored {
            Some(Ignored::Unobservable) => ObservedEndpoint {
                unobservable: None,
                ..endpoint
            },
            Some(Ignored::Served) => ObservedEndpoint {
                chains: self.served().into_iter().collect(),
                ..endpoint
            },
            Some(Ignored::Ports) => Pod { second: None, ..pod }.observe(index),
            _ => endpoint,
        }
    }

    pub(super) fn plan(&self, timing: &Timing) -> RotationPlan {
        plan(&self.observe(), timing)
    }

    /// Returns the steps that the operator plans now.
    pub(super) fn planned_writes(&mut self, timing: &Timing) -> Vec<Intent> {
        self.record_regression(timing);
        self.read(self.plan(timing).steps)
    }

    /// Returns the repairs that it decides on before endpoints were observed.
    pub(super) fn repairs(&mut self, timing: &Timing) -> Vec<Intent> {
        self.record_regression(timing);
        let observation = Observation {
            endpoints: Vec::new(),
            ..self.observe()
        };
        self.read(repairs(&observation, timing))
    }

    fn record_regression(&mut self, timing: &Timing) {
        let is_ignored = self.ignored == Some(Ignored::Regression);
        if !is_ignored && has_regressed(&self.observe(), timing) {
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

    /// Executes a step, unless the object that it replaces has changed.
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
                self.bad_write |= bundle.is_empty() || self.contains_expired(bundle);
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

    /// Lets the operator, kubelets, servers and API servers work until nothing is left to do; reports whether
    /// that happened.
    pub(super) fn settle(&mut self, timing: &Timing) -> bool {
        for _ in 0..60 {
            let plan = self.plan(timing);
            let waits = plan.wake_up.as_secs() <= LONG_AGO;
            if plan.steps.is_empty() && plan.is_complete && !waits {
                return true;
            }
            for intent in self.planned_writes(timing) {
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

    /// Advances the time by one second.
    pub(super) fn tick(&mut self) {
        self.uptime += 1;
        self.outdated = (self.outdated - 1).max(0);
        self.unread = (self.unread - 1).max(0);
        self.merge_old_times();
    }

    /// Replaces the operator's process.
    pub(super) fn restart_operator(&mut self) {
        self.uptime = match self.ignored {
            Some(Ignored::Leadership) => LONG_AGO,
            _ => 0,
        };
        self.run = 2;
        self.regressed = None;
        self.merge_old_times();
    }

    /// Reports whether a second may pass: API servers lag no longer than the timing says. Servers may lag
    /// forever, unless they are prompt.
    pub(super) fn may_tick(&self) -> bool {
        let mut targets = self.targets.iter();
        let served = self.served();
        let mut chains = self.pods.iter().flat_map(|pod| pod.chains());
        let is_read = !self.prompt || self.unread != 1 || chains.all(|chain| Some(chain) == served);
        is_read && targets.all(|target| target.bundle == target.effective)
    }

    /// Creates a pod that mounts the present Secret or, shortly after a change, the previous one.
    pub(super) fn start_pod(&mut self, observable: bool, outdated: bool) {
        let before = self.served_before.as_ref().and_then(PublishedSecret::chain);
        let chain = if outdated { before } else { self.served() };
        self.pods.push(Pod::new(chain, Stage::Created, observable));
    }

    /// Makes the pod reload the Secret, if it can.
    pub(super) fn reload(&mut self, pod: usize) {
        if let Some(chain) = self.served() {
            self.pods[pod].chain = Some(chain);
        }
    }

    /// Makes the process on the pod's other port reload the Secret.
    pub(super) fn reload_second(&mut self, pod: usize) {
        let chain = self.served();
        if let Some(port) = &mut self.pods[pod].second {
            port.chain = chain.or(port.chain);
        }
    }

    /// Advances the start of the pod.
    pub(super) fn advance(&mut self, pod: usize) {
        let pod = &mut self.pods[pod];
        pod.stage = match pod.stage {
            Stage::Created => Stage::Starting,
            Stage::Starting | Stage::Ready => Stage::Ready,
        };
    }

    /// Returns the chain that a pod serves after a reload.
    pub(super) fn served(&self) -> Option<Chain> {
        self.serving.as_ref()?.chain()
    }

    /// Equal contents have equal versions, unless another client wrote: fewer states, and no difference is
    /// hidden.
    fn serving_version(&self, serving: &PublishedSecret) -> String {
        version(&(serving, self.touches))
    }

    fn mark(&self) -> Mark {
        Mark {
            run: self.run,
            uptime: SignedDuration::from_secs(self.uptime),
        }
    }

    fn contains_expired(&self, bundle: &TrustSet) -> bool {
        bundle
            .iter()
            .any(|authority| authority.validity.not_after < self.now)
    }

    fn change(&mut self, change: &CaChange) {
        let mut issuer = Numbered(self.issued);
        let before = self.authorities.take().unwrap_or_default();
        let Ok(after) = before.with_change(change, &mut issuer);
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
            || self.contains_expired(&publication.bundle)
            || publication.leaf != Leaf::Keep && leaf.is_none_or(|leaf| leaf.validity.not_after < self.now);
        self.serving = Some(PublishedSecret {
            leaf,
            matches_spec: true,
            cross: publication.cross,
            bundle: Some(publication.bundle.clone()),
            authority: publication.authority.map(|authority| authority.fingerprint),
        });
    }

    /// Merges times that are long ago, so that equal situations are equal states.
    fn merge_old_times(&mut self) {
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
        // A wait that is over is removed.
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
