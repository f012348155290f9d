//! The order of conversions, webhooks and served versions, checked over every interleaving.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Value, json};
use windlass_crd::{
    is_served,
    stage::{Stage, staged, stops_serving},
    version_name, versions,
};

use super::super::{ConvertedBy, SwitchOrder, SwitchedCrd};

const STORED: &str = "v1";

/// What the pods of a revision know, and what their webhook asks for.
#[derive(Clone, Copy, Debug)]
struct Revision {
    versions: &'static [&'static str],
    rules: &'static [&'static str],
    policy: &'static str,
}

/// The older and the newer revision.
type Revisions = [Revision; 2];

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Crd {
    /// Whether each version is served.
    versions: BTreeMap<&'static str, bool>,
    /// The revision whose pods convert.
    converter: usize,
}

/// What an API server has observed, and whether the operator still waits for it to observe a later write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct View {
    crd: Crd,
    webhook: usize,
    is_awaited: [bool; 2],
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct World {
    crd: Crd,
    /// The revision whose pods the webhook calls.
    webhook: usize,
    views: [View; 2],
    /// The revision in the source, and how often it may change.
    desired: usize,
    changes: u8,
}

/// Leaves out a part of the order.
type Mutation = fn(&mut SwitchOrder);

impl Revision {
    fn crd(&self) -> Value {
        crd(self.versions.iter().map(|name| (*name, true)))
    }

    fn webhook(&self, revision: usize) -> Value {
        json!({"webhooks": [{
            "matchPolicy": self.policy,
            "clientConfig": {"service": {"namespace": "n", "name": format!("s{revision}")}},
            "rules": [{"apiGroups": ["example.com"], "apiVersions": self.rules, "resources": ["widgets"]}],
        }]})
    }

    /// The versions in which its webhook gets an object of `crd` that was sent in `version`.
    fn received(&self, crd: &Crd, version: &'static str) -> Vec<&'static str> {
        if self.rules.iter().any(|rule| [version, "*"].contains(rule)) {
            return vec![version];
        }
        let equivalent = crd.versions.keys().filter(|name| self.rules.contains(name));
        equivalent
            .filter(|_| self.policy == "Equivalent")
            .copied()
            .collect()
    }
}

fn crd(served: impl IntoIterator<Item = (&'static str, bool)>) -> Value {
    let versions: Vec<_> = served
        .into_iter()
        .map(|(name, served)| json!({"name": name, "served": served, "storage": name == STORED}))
        .collect();
    json!({
        "spec": {"group": "example.com", "names": {"plural": "widgets"}, "versions": versions},
        "status": {"storedVersions": [STORED]},
    })
}

impl Crd {
    fn body(&self) -> Value {
        crd(self.versions.iter().map(|(name, served)| (*name, *served)))
    }

    /// The CRD with the versions of `body`, added and removed if `all`.
    fn with(&self, body: &Value, all: bool) -> Self {
        let known = ["v0", "v1", "v2"];
        let of_body: BTreeMap<_, _> = versions(body)
            .iter()
            .filter_map(|version| {
                Some((
                    *known.iter().find(|name| **name == version_name(version))?,
                    is_served(version),
                ))
            })
            .collect();
        let versions = if all {
            of_body
        } else {
            let names = self.versions.keys();
            names
                .map(|name| (*name, of_body.get(name).copied().unwrap_or(false)))
                .collect()
        };
        Self {
            versions,
            ..self.clone()
        }
    }
}

impl World {
    fn installed(revisions: &Revisions, revision: usize) -> Self {
        let versions = revisions[revision]
            .versions
            .iter()
            .map(|name| (*name, true))
            .collect();
        let crd = Crd {
            versions,
            converter: revision,
        };
        let view = View {
            crd: crd.clone(),
            webhook: revision,
            is_awaited: [false; 2],
        };
        Self {
            crd,
            webhook: revision,
            views: [view.clone(), view],
            desired: revision,
            changes: 2,
        }
    }

    /// Whether the wait after the last switch goes on.
    fn waits(&self) -> bool {
        self.views.iter().any(|view| view.is_awaited != [false; 2])
    }

    /// A write; of a switch, if API servers have to observe it.
    fn written(&self, is_switch: bool, change: impl FnOnce(&mut Self)) -> Option<Self> {
        let mut next = self.clone();
        change(&mut next);
        if next == *self {
            return None;
        }
        for view in next.views.iter_mut().filter(|_| is_switch) {
            view.is_awaited = [view.crd != next.crd, view.webhook != next.webhook];
        }
        Some(next)
    }

    /// A write of the CRD in a stage, if it changes anything.
    fn staged(&self, revisions: &Revisions, stage: Stage) -> Option<Self> {
        let (live, desired) = (self.crd.body(), revisions[self.desired].crd());
        let body = staged(&desired, Some(&live), stage, true);
        let stops = stage != Stage::Rollout && stops_serving(&desired, &live);
        self.written(stops, |world| world.crd = world.crd.with(&body, true))
    }

    /// Why a request fails that an API server serves now, if one does.
    fn failing_request(&self, revisions: &Revisions) -> Option<String> {
        self.views.iter().find_map(|View { crd, webhook, .. }| {
            let (converter, receiver) = (&revisions[crd.converter], &revisions[*webhook]);
            let served = crd.versions.iter().filter(|(_, served)| **served);
            served.map(|(name, _)| *name).find_map(|sent| {
                if sent != STORED && !converter.versions.contains(&sent) {
                    return Some(format!("{sent} cannot be converted to be stored"));
                }
                let received = receiver.received(crd, sent);
                let knows = |revision: &Revision, name: &str| revision.versions.contains(&name);
                if received.is_empty() && !knows(receiver, sent) {
                    return Some(format!("{sent} is not admitted"));
                }
                received.into_iter().find_map(|name| {
                    let converts = name == sent || knows(converter, name) && knows(converter, sent);
                    let problem = format!("sent as {sent}, received as {name}");
                    (!converts || !knows(receiver, name)).then_some(problem)
                })
            })
        })
    }

    /// The first write of `BundleReconciler::arm`, and of the rollout before it.
    fn reconcile(&self, revisions: &Revisions, mutation: Mutation) -> Option<Self> {
        if let Some(next) = self.staged(revisions, Stage::Rollout) {
            return Some(next);
        }
        let to = self.desired;
        let switched_webhook = || self.written(true, |world| world.webhook = to);
        let (live, desired) = (self.crd.body(), revisions[to].crd());
        let is_switched = self.crd.converter == to;
        let switched = SwitchedCrd {
            live: &live,
            desired: &desired,
            converter: if is_switched {
                ConvertedBy::Plan
            } else {
                ConvertedBy::Revision
            },
        };
        let webhook = |revision: usize| [revisions[revision].webhook(revision)];
        let mut order = SwitchOrder::new(&[switched], &webhook(self.webhook), &webhook(to));
        mutation(&mut order);
        if order.webhooks_first {
            let next = self.staged(revisions, Stage::Common);
            return match next {
                Some(next) => Some(next),
                None if self.waits() => None,
                None => switched_webhook(),
            };
        }
        if order.observes_webhooks && self.waits() {
            return None;
        }
        let is_later = order.serves_later || order.observes_conversions;
        let stage = if is_later { Stage::Common } else { Stage::Proven };
        if !is_switched {
            let body = staged(&desired, Some(&live), stage, true);
            return self.written(true, |world| {
                world.crd = world.crd.with(&body, false);
                world.crd.converter = to;
            });
        }
        if let Some(next) = self.staged(revisions, stage) {
            return Some(next);
        }
        if order.observes_conversions && self.waits() {
            return None;
        }
        if let Some(next) = switched_webhook() {
            return Some(next);
        }
        if is_later && self.waits() {
            return None;
        }
        self.staged(revisions, Stage::Proven)
    }

    /// What API servers observe.
    fn observations(&self) -> Vec<Self> {
        let mut next = Vec::new();
        for index in 0..self.views.len() {
            let mut world = self.clone();
            world.views[index].crd = self.crd.clone();
            world.views[index].is_awaited[0] = false;
            next.push(world);
            let mut world = self.clone();
            world.views[index].webhook = self.webhook;
            world.views[index].is_awaited[1] = false;
            next.push(world);
        }
        next.retain(|world| world != self);
        next
    }

    fn is_settled(&self, revisions: &Revisions) -> bool {
        let known: BTreeSet<_> = revisions[self.desired].versions.iter().collect();
        let served: BTreeSet<_> = self
            .crd
            .versions
            .iter()
            .filter(|(_, served)| **served)
            .map(|(name, _)| name)
            .collect();
        (self.crd.converter, self.webhook) == (self.desired, self.desired) && served == known
    }
}

/// Returns why a request fails, or how the operator gets stuck, if it does: from each revision, over all interleavings.
fn problem(revisions: &Revisions, mutation: Mutation) -> Option<String> {
    let starts = [0, 1].map(|revision| World::installed(revisions, revision));
    let mut known: BTreeSet<_> = starts.iter().cloned().collect();
    let mut queue = VecDeque::from(starts);
    while let Some(world) = queue.pop_front() {
        if let Some(problem) = world.failing_request(revisions) {
            return Some(format!("{problem}: {world:?}"));
        }
        let mut next = world.observations();
        next.extend(world.reconcile(revisions, mutation));
        if next.is_empty() && !world.is_settled(revisions) {
            return Some(format!("stuck: {world:?}"));
        }
        if world.changes > 0 {
            let mut changed = world.clone();
            (changed.desired, changed.changes) = (1 - world.desired, world.changes - 1);
            next.push(changed);
        }
        for next in next {
            if known.insert(next.clone()) {
                queue.push_back(next);
            }
        }
    }
    None
}

/// Pairs of revisions of which the newer one serves more, with webhooks that ask for all versions, the oldest, the newest, any.
fn pairs() -> Vec<Revisions> {
    let older: [(&[_], _); 3] = [
        (&["v1"], "Equivalent"),
        (&["*"], "Equivalent"),
        (&["v1"], "Exact"),
    ];
    let newer: [(&[_], _); 5] = [
        (&["v1", "v2"], "Equivalent"),
        (&["v1"], "Equivalent"),
        (&["v2"], "Equivalent"),
        (&["*"], "Equivalent"),
        (&["v1", "v2"], "Exact"),
    ];
    let pair = |(old, old_policy), (new, new_policy)| {
        let of = |versions, rules, policy| Revision {
            versions,
            rules,
            policy,
        };
        [
            of(&["v1"] as &[_], old, old_policy),
            of(&["v1", "v2"], new, new_policy),
        ]
    };
    older
        .into_iter()
        .flat_map(|old| newer.map(|new| pair(old, new)))
        .collect()
}

/// Each revision serves a version that the other one does not know.
const CROSSED: Revisions = [
    Revision {
        versions: &["v0", "v1"],
        rules: &["*"],
        policy: "Equivalent",
    },
    Revision {
        versions: &["v1", "v2"],
        rules: &["*"],
        policy: "Equivalent",
    },
];

#[test]
fn no_request_meets_pods_that_do_not_know_its_version() {
    for revisions in pairs().into_iter().chain([CROSSED]) {
        assert_eq!(problem(&revisions, |_| {}), None, "{revisions:?}");
    }
}

#[test]
fn each_part_of_the_order_is_needed() {
    let mutations: [(&str, Mutation); 4] = [
        ("webhooks_first", |order| order.webhooks_first = false),
        ("observes_webhooks", |order| order.observes_webhooks = false),
        ("observes_conversions", |order| order.observes_conversions = false),
        ("serves_later", |order| order.serves_later = false),
    ];
    for (name, mutation) in mutations {
        let is_needed = pairs()
            .iter()
            .any(|revisions| problem(revisions, mutation).is_some());
        assert!(is_needed, "{name} is not needed");
    }
}
