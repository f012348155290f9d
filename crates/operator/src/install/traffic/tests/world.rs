//! A cluster with one Deployment that serves two webhooks, seen by two API servers that lag, and by an operator that lags.

use std::collections::BTreeSet;

use super::super::{Color, Pair, ServiceObservation};

/// A revision of the bundle: its pods know one path, and no other pods do.
pub(super) type Revision = u8;

/// How many webhooks there are.
pub(super) const WEBHOOKS: usize = 2;

/// How far the pods of a revision are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Pods {
    #[default]
    Absent,
    Starting,
    Ready,
}

/// What keeps a Deployment from ending old pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Hold {
    /// Nothing.
    Free,
    /// New pods come up beside the old ones.
    Held,
    /// The same, and nobody's change of the template begins another rollout.
    Frozen,
}

/// What a webhook calls: a Service, with the path of a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Target {
    pub(super) color: Color,
    pub(super) path: Revision,
}

/// What is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Objects {
    /// Of which revision the Deployment's template is, and whether it is held.
    pub(super) deployment: Option<(Revision, Hold)>,
    /// Which revision the blue and the green Service select.
    pub(super) services: [Option<Revision>; 2],
    pub(super) webhooks: [Option<Target>; WEBHOOKS],
}

/// The whole state.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct World {
    pub(super) objects: Objects,
    /// What the operator's watches have shown.
    pub(super) seen: Objects,
    /// Whom each API server calls.
    pub(super) api_servers: [[Option<Target>; WEBHOOKS]; 2],
    /// The pods of each revision.
    pub(super) pods: [Pods; 3],
    /// Whether they count as unavailable although they are ready: their ReplicaSet has the long `minReadySeconds` of a held
    /// Deployment, which only changes while it is the newest one.
    pub(super) unavailable: [bool; 3],
    /// The revision in the source.
    pub(super) desired: Revision,
    /// The last one that was installed completely.
    pub(super) installed: Revision,
    /// The operator remembers that it has changed whom webhooks call, or has just started.
    pub(super) noted: bool,
    /// How often the source may still change, the operator crash, somebody delete a Service, and somebody restart the
    /// Deployment.
    pub(super) budget: [u8; 4],
}

impl Objects {
    pub(super) fn service(&self, color: Color) -> Option<Revision> {
        self.services[index(color)]
    }

    pub(super) fn set_service(&mut self, color: Color, revision: Option<Revision>) {
        self.services[index(color)] = revision;
    }

    pub(super) fn called(&self) -> BTreeSet<Color> {
        self.webhooks
            .iter()
            .flatten()
            .map(|target| target.color)
            .collect()
    }

    /// What [`Color::choose`] is told of both Services.
    pub(super) fn pair(&self, desired: Revision) -> Pair {
        let one = |color| ServiceObservation {
            called: self.called().contains(&color),
            desired: self.service(color) == Some(desired),
        };
        Pair {
            blue: one(Color::Blue),
            green: one(Color::Green),
        }
    }
}

impl World {
    /// Revision 0 is installed, and everybody has observed it.
    pub(super) fn installed() -> Self {
        let target = Target {
            color: Color::Blue,
            path: 0,
        };
        let objects = Objects {
            deployment: Some((0, Hold::Free)),
            services: [Some(0), None],
            webhooks: [Some(target); WEBHOOKS],
        };
        Self {
            api_servers: [objects.webhooks; 2],
            seen: objects.clone(),
            objects,
            pods: [Pods::Ready, Pods::Absent, Pods::Absent],
            unavailable: [false; 3],
            desired: 0,
            installed: 0,
            noted: false,
            budget: [2, 1, 1, 1],
        }
    }

    /// Whether there are pods of a revision that answer, and a Service that leads to them.
    pub(super) fn has_pods(&self, revision: Revision) -> bool {
        let leads = |color: &Color| self.objects.service(*color) == Some(revision);
        self.pods[usize::from(revision)] == Pods::Ready && Color::BOTH.iter().any(leads)
    }

    /// Whether the Deployment, with the template of a revision, is held, or its controller has not come to its end since it was.
    pub(super) fn is_unfinished(&self, revision: Revision, hold: Hold) -> bool {
        let newest = usize::from(revision);
        let others = |index: &usize| *index != newest && self.pods[*index] != Pods::Absent;
        hold != Hold::Free || self.unavailable[newest] || (0..self.pods.len()).any(|index| others(&index))
    }

    /// Whether some API server may call what is not to be called any more.
    pub(super) fn is_unobserved(&self) -> bool {
        self.api_servers.iter().any(|view| *view != self.objects.webhooks)
    }

    /// Whether the wait after the last change of whom webhooks call goes on.
    pub(super) fn waits(&self) -> bool {
        self.noted && self.is_unobserved()
    }

    /// Why a call fails that an API server sends now, if one does.
    pub(super) fn failing_call(&self) -> Option<String> {
        let targets = self.api_servers.iter().flatten().flatten();
        targets.copied().find_map(|target| {
            let selected = self.objects.service(target.color);
            let problem = match selected {
                None => "there is no such Service".to_owned(),
                Some(revision) if revision != target.path => format!("pods of {revision} do not know it"),
                Some(revision) if self.pods[usize::from(revision)] != Pods::Ready => {
                    format!("no pod of {revision} is ready")
                }
                Some(_) => return None,
            };
            Some(format!("{target:?}: {problem}"))
        })
    }

    /// Whether everything is as desired.
    pub(super) fn is_settled(&self) -> bool {
        let objects = &self.objects;
        let calls = |target: &Option<Target>| {
            target.is_some_and(|target| {
                target.path == self.desired && objects.service(target.color) == Some(self.desired)
            })
        };
        objects.deployment == Some((self.desired, Hold::Free))
            && objects.webhooks.iter().all(calls)
            && objects.service(Color::Blue) == Some(self.desired)
    }

    /// What the world does by itself.
    pub(super) fn natural_steps(&self) -> Vec<Self> {
        let mut next = Vec::new();
        let mut add = |change: &dyn Fn(&mut Self)| {
            let mut world = self.clone();
            change(&mut world);
            if world != *self {
                next.push(world);
            }
        };
        for server in 0..self.api_servers.len() {
            add(&|world| world.api_servers[server] = world.objects.webhooks);
        }
        // Each kind has a watch of its own.
        add(&|world| world.seen.deployment = world.objects.deployment);
        add(&|world| world.seen.services = world.objects.services);
        add(&|world| world.seen.webhooks = world.objects.webhooks);
        for revision in 0..self.pods.len() {
            add(&|world| {
                if world.pods[revision] == Pods::Starting {
                    world.pods[revision] = Pods::Ready;
                }
            });
        }
        add(&Self::run_deployment_controller);
        next
    }

    /// What people and nodes do to it.
    pub(super) fn accidents(&self) -> Vec<Self> {
        let mut next = Vec::new();
        let [sources, crashes, deletions, restarts] = self.budget;
        if sources > 0 {
            for desired in (0..3).filter(|desired| *desired != self.desired) {
                let mut world = self.clone();
                (world.desired, world.budget[0]) = (desired, sources - 1);
                next.push(world);
            }
        }
        if crashes > 0 {
            let mut world = self.clone();
            (world.noted, world.budget[1]) = (true, crashes - 1);
            next.push(world);
        }
        // One that nobody calls, and of which the operator hears before it points webhooks there: no order of writes helps
        // against the deletion of what is called.
        for color in Color::BOTH.into_iter().filter(|_| deletions > 0) {
            let is_called = self
                .api_servers
                .iter()
                .flatten()
                .flatten()
                .any(|target| target.color == color);
            if !is_called && !self.objects.called().contains(&color) && self.objects.service(color).is_some()
            {
                let mut world = self.clone();
                world.objects.set_service(color, None);
                world.seen.set_service(color, None);
                world.budget[2] = deletions - 1;
                next.push(world);
            }
        }
        if restarts > 0 {
            let mut world = self.clone();
            world.restart();
            world.budget[3] = restarts - 1;
            next.push(world);
        }
        next
    }

    /// Somebody runs `kubectl rollout restart`: pods of the same revision come in place of the newest ones. Where these count as
    /// available, each ends when another one is there; else all end at once. Where nothing rolls out, nothing happens: the
    /// operator takes the annotation of the restart for nobody's business.
    fn restart(&mut self) {
        let Some((revision, hold)) = self.objects.deployment else {
            return;
        };
        let newest = &mut self.pods[usize::from(revision)];
        if hold == Hold::Held && *newest == Pods::Ready {
            *newest = Pods::Starting;
        }
    }

    /// Pods of the template's revision come up; others end when these are available, which they never are while it is held.
    /// Old pods that are not available end at once (`cleanupUnhealthyReplicas` of pkg/controller/deployment/rolling.go).
    fn run_deployment_controller(&mut self) {
        let Some((revision, hold)) = self.objects.deployment else {
            return;
        };
        let newest = usize::from(revision);
        let held = hold != Hold::Free;
        self.unavailable[newest] = held;
        if self.pods[newest] == Pods::Absent {
            self.pods[newest] = Pods::Starting;
        }
        let is_complete = !held && self.pods[newest] == Pods::Ready;
        for index in (0..self.pods.len()).filter(|index| *index != newest) {
            if is_complete || self.unavailable[index] || self.pods[index] == Pods::Starting {
                self.pods[index] = Pods::Absent;
                self.unavailable[index] = false;
            }
        }
    }
}

fn index(color: Color) -> usize {
    match color {
        Color::Blue => 0,
        Color::Green => 1,
    }
}
