//! All webhooks of a cluster, and who of them answers.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::RwLock;
use serde_json::Value;
use windlass_object::object;

use super::{
    ShadowedWebhook, WebhookCaller, WebhookInterpreter,
    read::{SharedWebhook, WebhookConfiguration},
    shadowing::Shadowing,
    webhook_interpreter::UnlistedWebhooks,
};
use crate::{
    Interpreter, InterpreterSource, Operation,
    customization::{CustomizationProblem, FieldProblems},
};

/// Webhooks, read once.
///
/// # Guarantees
///
/// - Until they are given for the first time, every question fails: nobody knows yet whether it is for one of them.
/// - All change at once: nobody sees some of the old ones and some of the new.
/// - Webhooks of an object that cannot be used as it is now answer as they did when it last could, until it is gone.
/// - Where it never could, a webhook that cannot be called is asked all the same, and fails: what somebody has said about a kind is not
///   silently replaced by what is usual.
/// - Who answers does not depend on the order in which objects are given. Those count more whose `<configuration>/<webhook>` is less.
pub struct Webhooks {
    caller: Arc<dyn WebhookCaller>,
    /// None until they are given.
    set: RwLock<Option<Arc<WebhookSet>>>,
    /// How many objects were read.
    read: AtomicU64,
}

/// What has become of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookConfigurationState {
    /// Whether its webhooks are asked.
    pub usage: WebhookUsage,
    /// Those of them that others are asked instead of.
    pub shadowed: Vec<ShadowedWebhook>,
}

/// Whether the webhooks of an object are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookUsage {
    /// They are, as it says.
    Used,
    /// They are asked as it said before, for these reasons.
    Kept(Vec<CustomizationProblem>),
    /// Those that something is wrong with fail when they are asked, for these reasons; the others answer.
    Failing(Vec<CustomizationProblem>),
    /// None is, for these reasons.
    Unusable(Vec<CustomizationProblem>),
}

#[derive(Default)]
struct WebhookSet {
    known: BTreeMap<String, KnownConfiguration>,
    /// By the kinds that a rule of theirs is for, in the order in which they count.
    by_kind: HashMap<String, Vec<SharedWebhook>>,
    /// Those with a rule for any kind, in that order.
    any_kind: Vec<SharedWebhook>,
}

#[derive(Clone)]
struct KnownConfiguration {
    /// What they were read of.
    written: Value,
    /// Which reading that was.
    reading: u64,
    /// The first reading of the same, whatever is trusted.
    revision: u64,
    webhooks: Vec<SharedWebhook>,
    problems: Vec<CustomizationProblem>,
}

// === impl Webhooks ===

impl Webhooks {
    /// Not given yet; `caller` will call them.
    pub fn new(caller: Arc<dyn WebhookCaller>) -> Self {
        Self {
            caller,
            set: RwLock::default(),
            read: AtomicU64::default(),
        }
    }

    /// Those that are asked an operation of an object, the one that counts most first; `None` until they are given.
    pub fn asked(&self, operation: Operation, object: &Value) -> Option<Vec<WebhookInterpreter>> {
        let set = self.set.read().clone()?;
        let found = set.candidates(operation, object).into_iter();
        let interpreters = found.map(|webhook| {
            let known = set.known.get(&webhook.configuration);
            WebhookInterpreter {
                revision: known.map_or(0, |known| known.revision),
                reading: known.map_or(0, |known| known.reading),
                webhook,
                caller: self.caller.clone(),
            }
        });
        Some(interpreters.collect())
    }

    /// Takes ResourceInterpreterWebhookConfigurations in place of those that were there, and tells what has become of each, in their
    /// order.
    pub fn replace(&self, objects: &[Value]) -> Vec<WebhookConfigurationState> {
        let old = self.set.read().clone().unwrap_or_default();
        let mut known = BTreeMap::new();
        let usages: Vec<_> = objects
            .iter()
            .map(|object| {
                let reading = self.read.fetch_add(1, Ordering::Relaxed);
                take_in(object, reading, &old, &mut known)
            })
            .collect();
        let new = WebhookSet::new(known);
        let mut shadowed = new.shadowed();
        let states = usages.into_iter().map(|(name, usage)| WebhookConfigurationState {
            usage,
            shadowed: name.and_then(|name| shadowed.remove(&name)).unwrap_or_default(),
        });
        let states = states.collect();
        // The old one is dropped when nobody waits for the lock.
        let old = self.set.write().replace(Arc::new(new));
        drop(old);
        states
    }
}

impl InterpreterSource for Webhooks {
    fn interpreters(&self, operation: Operation, object: &Value) -> Vec<Arc<dyn Interpreter>> {
        let Some(asked) = self.asked(operation, object) else {
            return vec![Arc::new(UnlistedWebhooks)];
        };
        let interpreters = asked.into_iter();
        interpreters
            .map(|webhook| -> Arc<dyn Interpreter> { Arc::new(webhook) })
            .collect()
    }
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_set()
            .entries(self.set.read().iter().flat_map(|set| set.known.keys()))
            .finish()
    }
}

/// Adds an object to what is known, or what it was before. `reading` is what this one is told by.
fn take_in(
    object: &Value,
    reading: u64,
    old: &WebhookSet,
    known: &mut BTreeMap<String, KnownConfiguration>,
) -> (Option<String>, WebhookUsage) {
    let name = match WebhookConfiguration::name(object) {
        Ok(name) => name.to_owned(),
        Err(problems) => return (None, WebhookUsage::Unusable(problems)),
    };
    if known.contains_key(&name) {
        let mut problems = FieldProblems::default();
        problems.note("metadata.name", format_args!("duplicate {name:?}"));
        return (None, WebhookUsage::Unusable(problems.into_problems()));
    }
    let written = object.get("webhooks").unwrap_or(&Value::Null);
    let before = old.known.get(&name);
    if let Some(before) = before.filter(|before| before.written == *written) {
        known.insert(name.clone(), before.clone());
        let usage = match before.problems.as_slice() {
            [] => WebhookUsage::Used,
            problems => WebhookUsage::Failing(problems.to_vec()),
        };
        return (Some(name), usage);
    }
    let same = before.filter(|before| without_trust(&before.written) == without_trust(written));
    let revision = same.map_or(reading, |before| before.revision);
    let WebhookConfiguration { webhooks, problems } = WebhookConfiguration::read(&name, object);
    // What never answered is not worth keeping.
    let before = before.filter(|before| before.problems.is_empty() && !problems.is_empty());
    if let Some(before) = before {
        known.insert(name.clone(), before.clone());
        return (Some(name), WebhookUsage::Kept(problems));
    }
    let usage = match problems.as_slice() {
        [] => WebhookUsage::Used,
        problems => WebhookUsage::Failing(problems.to_vec()),
    };
    let read = KnownConfiguration {
        written: written.clone(),
        reading,
        revision,
        webhooks: webhooks.into_iter().map(Arc::new).collect(),
        problems,
    };
    known.insert(name.clone(), read);
    (Some(name), usage)
}

/// Webhooks as they are written, without what tells whom to trust: that changes while they stay the same.
fn without_trust(written: &Value) -> Value {
    let mut written = written.clone();
    for webhook in written.as_array_mut().into_iter().flatten() {
        if let Some(Value::Object(config)) = webhook.get_mut("clientConfig") {
            config.remove("caBundle");
        }
    }
    written
}

// === impl WebhookSet ===

impl WebhookSet {
    fn new(known: BTreeMap<String, KnownConfiguration>) -> Self {
        let mut by_kind = HashMap::<String, Vec<_>>::new();
        let mut any_kind = Vec::new();
        let mut webhooks: Vec<_> = known.values().flat_map(|known| &known.webhooks).collect();
        webhooks.sort_by(|left, right| left.uid.cmp(&right.uid));
        for webhook in webhooks {
            let kinds = webhook.rules.iter().map(|rule| rule.kinds.clone());
            // None as soon as one is for any kind.
            match kinds.collect::<Option<Vec<_>>>() {
                None => any_kind.push(webhook.clone()),
                Some(kinds) => {
                    for kind in kinds.into_iter().flatten().collect::<BTreeSet<_>>() {
                        by_kind.entry(kind).or_default().push(webhook.clone());
                    }
                }
            }
        }
        Self {
            known,
            by_kind,
            any_kind,
        }
    }

    /// Those that are asked an operation of an object, the one that counts most first.
    fn candidates(&self, operation: Operation, object: &Value) -> Vec<SharedWebhook> {
        let of_kind = object::text(object, "/kind").and_then(|kind| self.by_kind.get(kind));
        let all = of_kind.into_iter().flatten().chain(&self.any_kind);
        let fits = |webhook: &&SharedWebhook| webhook.rules.iter().any(|rule| rule.fits(operation, object));
        let mut candidates: Vec<_> = all.filter(fits).cloned().collect();
        candidates.sort_by(|left, right| left.uid.cmp(&right.uid));
        candidates
    }

    /// Those that others are asked instead of, by the name of their object.
    fn shadowed(&self) -> HashMap<String, Vec<ShadowedWebhook>> {
        let mut webhooks: Vec<_> = self.known.values().flat_map(|known| &known.webhooks).collect();
        webhooks.sort_by(|left, right| left.uid.cmp(&right.uid));
        let mut shadowing = Shadowing::default();
        let mut found = HashMap::<String, Vec<_>>::new();
        for webhook in webhooks {
            let shadowed = shadowing.add(webhook);
            if !shadowed.is_empty() {
                let of_object = found.entry(webhook.configuration.clone()).or_default();
                of_object.extend(shadowed);
            }
        }
        found
    }
}
