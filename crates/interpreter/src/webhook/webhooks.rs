//! All webhooks of a cluster, and the selection of those for an object.

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
    shadowing::Shadowing,
    webhook_configuration::{SharedWebhook, WebhookConfiguration},
    webhook_interpreter::UnlistedWebhooks,
};
use crate::{
    Interpreter, InterpreterSource, Operation,
    customization::{CustomizationProblem, FieldProblems},
};

/// Parsed webhooks.
///
/// # Guarantees
///
/// - Until the first list, every question fails, because a webhook might select its object.
/// - All webhooks are replaced atomically.
/// - If a configuration becomes invalid, its previous webhooks stay in use, until it is deleted.
/// - If a configuration was never valid, questions to webhooks that cannot be called fail: they are not answered silently by an interpreter
///   with lower precedence.
/// - The selection does not depend on the order of the objects. The webhook whose `<configuration>/<webhook>` sorts first has precedence.
pub struct Webhooks {
    caller: Arc<dyn WebhookCaller>,
    /// `None` until the first list.
    set: RwLock<Option<Arc<WebhookSet>>>,
    /// The number of configurations that were read.
    read: AtomicU64,
}

/// Whether the webhooks of a configuration are in use, and which are shadowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookConfigurationState {
    /// Whether the webhooks are in use.
    pub usage: WebhookUsage,
    /// Webhooks that other webhooks shadow.
    pub shadowed: Vec<ShadowedWebhook>,
}

/// Whether the webhooks of a configuration are in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookUsage {
    /// The current webhooks are in use.
    Used,
    /// The previous webhooks are in use, because the current ones are invalid for these reasons.
    Kept(Vec<CustomizationProblem>),
    /// Questions to invalid webhooks fail for these reasons; the others answer.
    Failing(Vec<CustomizationProblem>),
    /// No webhook is in use, because the configuration is invalid for these reasons.
    Unusable(Vec<CustomizationProblem>),
}

#[derive(Default)]
struct WebhookSet {
    known: BTreeMap<String, KnownConfiguration>,
    /// Webhooks by the kinds of their rules, in the order of precedence.
    by_kind: HashMap<String, Vec<SharedWebhook>>,
    /// Webhooks with a rule for any kind, in the order of precedence.
    any_kind: Vec<SharedWebhook>,
}

#[derive(Clone)]
struct KnownConfiguration {
    /// The source object.
    written: Value,
    /// The value of [`WebhookInterpreter::full_revision`].
    full_revision: u64,
    /// The value of [`WebhookInterpreter::revision`].
    revision: u64,
    webhooks: Vec<SharedWebhook>,
    problems: Vec<CustomizationProblem>,
}

impl Webhooks {
    /// Creates an empty, unlisted set; `caller` calls the webhooks.
    pub fn new(caller: Arc<dyn WebhookCaller>) -> Self {
        Self {
            caller,
            set: RwLock::default(),
            read: AtomicU64::default(),
        }
    }

    /// Returns the webhooks that select an operation and object, in the order of precedence; `None` until the
    /// first list.
    pub fn matching(&self, operation: Operation, object: &Value) -> Option<Vec<WebhookInterpreter>> {
        let set = self.set.read().clone()?;
        let found = set.candidates(operation, object).into_iter();
        let interpreters = found.map(|webhook| {
            let known = set.known.get(&webhook.configuration);
            WebhookInterpreter {
                revision: known.map_or(0, |known| known.revision),
                full_revision: known.map_or(0, |known| known.full_revision),
                webhook,
                caller: self.caller.clone(),
            }
        });
        Some(interpreters.collect())
    }

    /// Replaces all ResourceInterpreterWebhookConfigurations; returns the state of each, in the order of the
    /// objects.
    pub fn replace(&self, objects: &[Value]) -> Vec<WebhookConfigurationState> {
        let old = self.set.read().clone().unwrap_or_default();
        let mut known = BTreeMap::new();
        let usages: Vec<_> = objects
            .iter()
            .map(|object| {
                let full_revision = self.read.fetch_add(1, Ordering::Relaxed);
                add(object, full_revision, &old, &mut known)
            })
            .collect();
        let new = WebhookSet::new(known);
        let mut shadowed = new.shadowed();
        let states = usages.into_iter().map(|(name, usage)| WebhookConfigurationState {
            usage,
            shadowed: name.and_then(|name| shadowed.remove(&name)).unwrap_or_default(),
        });
        let states = states.collect();
        // Drops the old set after the lock is released.
        let old = self.set.write().replace(Arc::new(new));
        drop(old);
        states
    }
}

impl InterpreterSource for Webhooks {
    fn interpreters(&self, operation: Operation, object: &Value) -> Vec<Arc<dyn Interpreter>> {
        let Some(asked) = self.matching(operation, object) else {
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

/// Adds a configuration, or its previous version if it is invalid. `full_revision` identifies the current
/// version.
fn add(
    object: &Value,
    full_revision: u64,
    old: &WebhookSet,
    known: &mut BTreeMap<String, KnownConfiguration>,
) -> (Option<String>, WebhookUsage) {
    let name = match WebhookConfiguration::name(object) {
        Ok(name) => name.to_owned(),
        Err(problems) => return (None, WebhookUsage::Unusable(problems)),
    };
    if known.contains_key(&name) {
        let mut problems = FieldProblems::default();
        problems.add("metadata.name", format_args!("duplicate {name:?}"));
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
    let revision = same.map_or(full_revision, |before| before.revision);
    let WebhookConfiguration { webhooks, problems } = WebhookConfiguration::read(&name, object);
    // A configuration that was never valid is not kept.
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
        full_revision,
        revision,
        webhooks: webhooks.into_iter().map(Arc::new).collect(),
        problems,
    };
    known.insert(name.clone(), read);
    (Some(name), usage)
}

/// Returns the webhooks without trust bundles, whose changes do not change answers.
fn without_trust(written: &Value) -> Value {
    let mut written = written.clone();
    for webhook in written.as_array_mut().into_iter().flatten() {
        if let Some(Value::Object(config)) = webhook.get_mut("clientConfig") {
            config.remove("caBundle");
        }
    }
    written
}

impl WebhookSet {
    fn new(known: BTreeMap<String, KnownConfiguration>) -> Self {
        let mut by_kind = HashMap::<String, Vec<_>>::new();
        let mut any_kind = Vec::new();
        let mut webhooks: Vec<_> = known.values().flat_map(|known| &known.webhooks).collect();
        webhooks.sort_by(|left, right| left.uid.cmp(&right.uid));
        for webhook in webhooks {
            let kinds = webhook.rules.iter().map(|rule| rule.kinds.clone());
            // `None` if any rule is for all kinds.
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

    /// Returns the webhooks that select an operation and object, in the order of precedence.
    fn candidates(&self, operation: Operation, object: &Value) -> Vec<SharedWebhook> {
        let of_kind = object::text(object, "/kind").and_then(|kind| self.by_kind.get(kind));
        let all = of_kind.into_iter().flatten().chain(&self.any_kind);
        let fits =
            |webhook: &&SharedWebhook| webhook.rules.iter().any(|rule| rule.matches(operation, object));
        let mut candidates: Vec<_> = all.filter(fits).cloned().collect();
        candidates.sort_by(|left, right| left.uid.cmp(&right.uid));
        candidates
    }

    /// Returns the shadowed webhooks by the name of their configuration.
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
