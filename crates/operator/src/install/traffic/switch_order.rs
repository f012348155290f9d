//! The order in which conversions, webhooks and served versions go from the pods of one revision to those of another.
//!
//! Pods know the versions of their bundle's CRDs only. The API server converts an object to the version that a request asks
//! for, and with `matchPolicy: Equivalent` to one that a webhook's rules name, even if that is not served. Neither may ask for
//! a version that the pods behind the conversion do not know, and no webhook may get one that its pods do not know.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_crd::{is_served, storage_version, version, version_name, versions};
use windlass_object::object;

use super::calls::CalledPath;

/// A CRD of a plan.
#[derive(Clone, Copy, Debug)]
pub struct SwitchedCrd<'a> {
    /// The CRD in the cluster.
    pub live: &'a Value,
    /// The CRD of the plan: its pods know these versions.
    pub desired: &'a Value,
    /// What converts now.
    pub converter: ConvertedBy,
}

/// What converts the objects of a CRD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvertedBy {
    /// Pods of the plan.
    Plan,
    /// Pods of another revision, and the plan converts, too.
    Revision,
    /// Nothing, or a server of another owner, and the plan converts.
    Other,
    /// The plan does not convert.
    Unplanned,
}

/// In which order conversions, webhooks and served versions are switched. Where nothing is set, conversions and served versions
/// are switched by one write, and webhooks follow at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchOrder {
    /// Webhooks are switched before conversions: those of the other revision ask for a version that the pods of the plan do not
    /// know.
    pub webhooks_first: bool,
    /// Webhooks are switched: conversions follow when every API server has observed that.
    pub observes_webhooks: bool,
    /// Webhooks are switched when every API server has observed the conversions and served versions: those of the plan ask for a
    /// version that the pods of the other revision do not know, or do not expect one that was served until now.
    pub observes_conversions: bool,
    /// Additional versions are served when every API server has observed that webhooks are switched: those of the other revision do
    /// not expect them.
    pub serves_later: bool,
}

/// The webhooks of a webhook configuration, and what it calls.
struct Webhook<'a> {
    value: &'a Value,
    call: Option<CalledPath>,
}

impl SwitchOrder {
    /// The order for `crds`, while the webhook configurations in the cluster are `live`, and those of the plan `desired`.
    pub fn new(crds: &[SwitchedCrd<'_>], live: &[Value], desired: &[Value]) -> Self {
        let calls = |configurations: &[Value]| -> BTreeSet<_> {
            let webhooks = configurations.iter().flat_map(webhooks);
            webhooks.filter_map(|webhook| webhook.call).collect()
        };
        let (called, to_call) = (calls(live), calls(desired));
        let others = |calls: &BTreeSet<CalledPath>, configurations: &[Value]| -> Vec<Value> {
            let webhooks = configurations.iter().flat_map(webhooks);
            webhooks
                .filter(|webhook| webhook.call.as_ref().is_some_and(|call| !calls.contains(call)))
                .map(|webhook| webhook.value.clone())
                .collect()
        };
        let (old, pending) = (others(&to_call, live), others(&called, desired));
        let are_switched = pending.is_empty() && !to_call.is_empty();
        let mut order = Self::default();
        for crd in crds {
            let converter = crd.converter;
            let is_unswitched = matches!(converter, ConvertedBy::Revision | ConvertedBy::Other);
            let is_switched = converter == ConvertedBy::Plan && are_switched;
            order.webhooks_first |= is_unswitched && crd.is_asked_for_unknown(&old);
            order.observes_webhooks |= converter == ConvertedBy::Revision && are_switched;
            order.observes_conversions |= crd.is_asked_for_new(&pending, &old) || crd.surprises_new(&pending);
            order.serves_later |= crd.surprises_old(&old) || (is_switched && crd.added().next().is_some());
        }
        order
    }
}

/// Reports whether webhooks ask for conversions of served versions of a CRD.
pub fn asks_for_conversion(configurations: &[Value], crd: &Value) -> bool {
    let webhooks: Vec<_> = configurations
        .iter()
        .flat_map(|configuration| object::items(configuration, "/webhooks"))
        .cloned()
        .collect();
    let mut asked = served(crd).flat_map(|name| conversions(&webhooks, &[crd, crd], name));
    asked.next().is_some()
}

impl SwitchedCrd<'_> {
    /// Whether the webhooks `old` ask for a version that the pods of the plan do not know.
    fn is_asked_for_unknown(&self, old: &[Value]) -> bool {
        let kept = served(self.live).filter(|name| serves(self.desired, name));
        let asked = kept.flat_map(|name| conversions(old, &[self.live, self.desired], name));
        asked
            .into_iter()
            .any(|asked| version(self.desired, &asked).is_none())
    }

    /// Whether the webhooks `pending` ask for a version that the pods of the other revision may not know: it is neither stored nor
    /// named by the webhooks `old`.
    fn is_asked_for_new(&self, pending: &[Value], old: &[Value]) -> bool {
        if self.converter == ConvertedBy::Unplanned {
            return false;
        }
        let crds = [self.live, self.desired];
        let names: BTreeSet<_> = crds.into_iter().flat_map(served).collect();
        let rules = old.iter().flat_map(|webhook| rules_for(webhook, &crds));
        let known: BTreeSet<_> = rules
            .flat_map(|rule| object::items(rule, "/apiVersions"))
            .filter_map(Value::as_str)
            .chain(storage_version(self.live))
            .collect();
        let mut asked = names.iter().flat_map(|name| conversions(pending, &crds, name));
        asked.any(|asked| !known.contains(asked.as_str()))
    }

    /// Whether the webhooks `pending` do not expect a version that the plan drops, and that API servers may still serve.
    fn surprises_new(&self, pending: &[Value]) -> bool {
        let mut dropped = versions(self.live)
            .iter()
            .map(version_name)
            .filter(|name| !serves(self.desired, name));
        dropped.any(|name| self.surprises(pending, name))
    }

    /// Whether the webhooks `old` do not expect a version that the plan serves and the live CRD does not.
    fn surprises_old(&self, old: &[Value]) -> bool {
        self.added().any(|name| self.surprises(old, name))
    }

    /// The versions that the plan serves and the live CRD does not.
    fn added(&self) -> impl Iterator<Item = &str> {
        served(self.desired).filter(|name| !serves(self.live, name))
    }

    /// Whether one of `webhooks` gets objects of a version unconverted, or is skipped by them.
    fn surprises(&self, webhooks: &[Value], name: &str) -> bool {
        let crds = [self.live, self.desired];
        webhooks.iter().any(|webhook| {
            let received = received(webhook, &crds, name);
            let is_skipped = received.is_empty() && is_for(webhook, &crds);
            is_skipped || received.iter().any(|received| received == name)
        })
    }
}

/// Returns the versions other than `name` that webhooks get objects in which are sent in the version `name`.
fn conversions(webhooks: &[Value], crds: &[&Value; 2], name: &str) -> Vec<String> {
    let received = webhooks.iter().flat_map(|webhook| received(webhook, crds, name));
    received.filter(|received| received != name).collect()
}

/// Returns the versions in which a webhook may get an object that is sent in the version `name` (`ShouldCallHook` of
/// k8s.io/apiserver).
fn received(webhook: &Value, crds: &[&Value; 2], name: &str) -> Vec<String> {
    let rules: Vec<_> = rules_for(webhook, crds).collect();
    let names_version = |name: &str| rules.iter().any(|rule| lists(rule, "/apiVersions", &["*", name]));
    if names_version(name) {
        return vec![name.to_owned()];
    }
    if object::text(webhook, "/matchPolicy") == Some("Exact") {
        return Vec::new();
    }
    let known: BTreeSet<_> = crds
        .iter()
        .flat_map(|crd| versions(crd))
        .map(version_name)
        .collect();
    let equivalent = known.into_iter().filter(|version| names_version(version));
    equivalent.map(str::to_owned).collect()
}

/// Whether a webhook gets objects of a CRD in some version.
fn is_for(webhook: &Value, crds: &[&Value; 2]) -> bool {
    rules_for(webhook, crds).next().is_some()
}

/// Returns the rules of a webhook for a CRD.
fn rules_for<'a>(webhook: &'a Value, [crd, _]: &[&Value; 2]) -> impl Iterator<Item = &'a Value> {
    let text = |pointer| object::text(crd, pointer).unwrap_or_default();
    let (group, plural) = (
        text("/spec/group").to_owned(),
        text("/spec/names/plural").to_owned(),
    );
    object::items(webhook, "/rules").iter().filter(move |rule| {
        let resources = object::items(rule, "/resources").iter().filter_map(Value::as_str);
        let mut resources = resources.map(|resource| resource.split('/').next().unwrap_or(resource));
        lists(rule, "/apiGroups", &["*", &group])
            && resources.any(|resource| ["*", &plural].contains(&resource))
    })
}

fn lists(rule: &Value, pointer: &str, any_of: &[&str]) -> bool {
    let listed = object::items(rule, pointer).iter().filter_map(Value::as_str);
    listed.into_iter().any(|listed| any_of.contains(&listed))
}

fn served(crd: &Value) -> impl Iterator<Item = &str> {
    versions(crd)
        .iter()
        .filter(|version| is_served(version))
        .map(version_name)
}

fn serves(crd: &Value, name: &str) -> bool {
    version(crd, name).is_some_and(is_served)
}

fn webhooks(configuration: &Value) -> impl Iterator<Item = Webhook<'_>> {
    object::items(configuration, "/webhooks")
        .iter()
        .map(|value| Webhook {
            value,
            call: value
                .pointer("/clientConfig/service")
                .and_then(CalledPath::from_reference),
        })
}
