//! The customizations and webhooks of a cluster, as last read.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt::Display, sync::Arc};

use interpreter::{
    Operation,
    customization::{CustomizationRules, CustomizationState, Customizations},
    webhook::{WebhookConfigurationState, WebhookUsage},
};
use serde_json::Value;
use windlass_cluster::{Index, IndexedObject, Kind, kinds};
use windlass_object::{
    ObjectKey, object,
    text::{Listing, shortened, tidied},
};

use super::cached_webhooks::CachedWebhooks;

/// The kinds that define how objects are interpreted. Trust bundle targets share the watches of the last one.
pub(crate) const INTERPRETATION_KINDS: [Kind; 3] = [
    kinds::RESOURCE_INTERPRETER_CUSTOMIZATION,
    kinds::RESOURCE_INTERPRETATION,
    kinds::RESOURCE_INTERPRETER_WEBHOOK_CONFIGURATION,
];

/// The customizations and webhooks of the last refresh, with their problems.
#[derive(Default)]
pub(super) struct InterpretationRules {
    /// Whether a refresh has finished.
    is_read: bool,
    /// The objects, with the version that was read.
    versions: BTreeMap<ObjectKey, Option<Arc<str>>>,
    /// The problem of each object.
    problems: BTreeMap<(ObjectKey, InterpretationProblem), String>,
    /// Customizations of which no part is in use.
    unusable: Vec<UnusableCustomization>,
    /// The kinds that could not be listed.
    unlisted: Vec<Kind>,
}

/// A customization that cannot be used.
pub(super) struct UnusableCustomization {
    object: Arc<Value>,
    /// Name of the customization, and why it is not used.
    pub(super) message: String,
}

/// A new problem of a customization or a webhook configuration.
#[derive(Debug)]
pub(crate) struct InterpretationNews {
    /// The customization or configuration.
    pub(crate) object: Arc<Value>,
    /// The kind of problem.
    pub(crate) problem: InterpretationProblem,
    /// A description for users.
    pub(crate) message: String,
}

/// The kinds of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum InterpretationProblem {
    /// A customization cannot be used in its current version.
    Customization,
    /// Another customization takes precedence.
    Overruled,
    /// A webhook configuration cannot be used in its current version.
    Webhook,
    /// Another webhook takes precedence.
    Shadowed,
}

/// How a message lists problems.
const PROBLEMS: Listing = Listing {
    most: 5,
    separator: "; ",
    way_to_rest: "",
};

/// The longest message, in bytes.
const LONGEST: usize = 1024;

impl InterpretationRules {
    /// Reports whether there are no customizations and no webhooks.
    pub(super) fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }

    /// Returns the kinds that could not be listed.
    pub(super) fn unlisted(&self) -> &[Kind] {
        &self.unlisted
    }

    /// Returns an unusable customization that may be meant for an operation on an object.
    pub(super) fn unusable_for(
        &self,
        operation: Operation,
        object: &Value,
    ) -> Option<&UnusableCustomization> {
        self.unusable
            .iter()
            .find(|unusable| may_answer(&unusable.object, operation, object))
    }

    /// Reports whether the current objects of the index were already read.
    pub(super) fn is_current(&self, index: &Index, unlisted: &[Kind]) -> bool {
        self.is_read && self.unlisted == unlisted && versions(&indexed(index)) == self.versions
    }

    /// Reads the current objects of the index. Returns the new problems, too.
    pub(super) fn refreshed(
        &self,
        index: &Index,
        unlisted: Vec<Kind>,
        customizations: &Customizations,
        webhooks: &CachedWebhooks,
    ) -> (Self, Vec<InterpretationNews>) {
        let indexed = indexed(index);
        let mut rules = Self {
            is_read: true,
            versions: versions(&indexed),
            unlisted,
            ..Self::default()
        };
        let (configurations, customization_objects): (Vec<_>, Vec<_>) = indexed
            .into_iter()
            .partition(|(key, _)| is_webhook_configuration(key));
        let mut news = Vec::new();
        let objects = read(&customization_objects);
        let states = customizations.replace(&objects);
        let overruled = customizations.overruled();
        for (((key, _), object), state) in customization_objects.into_iter().zip(objects).zip(states) {
            let object = Arc::new(object);
            let name = key.to_string();
            let by: Vec<_> = overruled
                .iter()
                .filter(|overruled| overruled.customization == name)
                .collect();
            if !by.is_empty() {
                let problem = InterpretationProblem::Overruled;
                news.extend(self.new_problem(&mut rules, key.clone(), object.clone(), problem, list(&by)));
            }
            if let Some((message, is_kept)) = customization_problem(state) {
                if !is_kept {
                    rules.unusable.push(UnusableCustomization {
                        object: object.clone(),
                        message: format!("{key} {message}"),
                    });
                }
                let problem = InterpretationProblem::Customization;
                news.extend(self.new_problem(&mut rules, key, object, problem, message));
            }
        }
        let objects = read(&configurations);
        let states = webhooks.replace(&objects);
        for (((key, _), object), state) in configurations.into_iter().zip(objects).zip(states) {
            let object = Arc::new(object);
            for (problem, message) in webhook_problems(state) {
                news.extend(self.new_problem(&mut rules, key.clone(), object.clone(), problem, message));
            }
        }
        let gone = self
            .versions
            .keys()
            .filter(|key| is_webhook_configuration(key) && !rules.versions.contains_key(key));
        for key in gone {
            webhooks.forget(&key.name);
        }
        (rules, news)
    }

    /// Records a problem of an object in `rules`, and returns it if it is new.
    fn new_problem(
        &self,
        rules: &mut Self,
        key: ObjectKey,
        object: Arc<Value>,
        problem: InterpretationProblem,
        message: String,
    ) -> Option<InterpretationNews> {
        let known = (key, problem);
        let is_new = self.problems.get(&known) != Some(&message);
        let news = is_new.then(|| InterpretationNews {
            object,
            problem,
            message: message.clone(),
        });
        rules.problems.insert(known, message);
        news
    }
}

impl InterpretationProblem {
    /// Returns the reason of the event about this kind of problem.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Customization => "CustomizationUnusable",
            Self::Overruled => "CustomizationOverruled",
            Self::Webhook => "WebhookUnusable",
            Self::Shadowed => "WebhookShadowed",
        }
    }
}

fn is_webhook_configuration(key: &ObjectKey) -> bool {
    Kind::from_key(key) == kinds::RESOURCE_INTERPRETER_WEBHOOK_CONFIGURATION
}

fn read(indexed: &[(ObjectKey, IndexedObject)]) -> Vec<Value> {
    let objects = indexed.iter();
    objects.map(|(_, object)| Value::clone(&object.read())).collect()
}

/// Returns why a customization is not used, and whether its previous version is used instead.
fn customization_problem(state: CustomizationState) -> Option<(String, bool)> {
    match state {
        CustomizationState::Used => None,
        CustomizationState::Kept(problems) => Some((previous_in_use(&problems), true)),
        CustomizationState::Unusable(problems) => Some((with_problems("cannot be used", &problems), false)),
    }
}

fn webhook_problems(state: WebhookConfigurationState) -> Vec<(InterpretationProblem, String)> {
    let unusable = match state.usage {
        WebhookUsage::Used => None,
        WebhookUsage::Kept(problems) => Some(previous_in_use(&problems)),
        WebhookUsage::Failing(problems) => {
            Some(with_problems("has webhooks that cannot be called", &problems))
        }
        WebhookUsage::Unusable(problems) => Some(with_problems("cannot be used", &problems)),
    };
    let shadowed = (!state.shadowed.is_empty()).then(|| list(&state.shadowed));
    let unusable = unusable.map(|message| (InterpretationProblem::Webhook, message));
    let shadowed = shadowed.map(|message| (InterpretationProblem::Shadowed, message));
    unusable.into_iter().chain(shadowed).collect()
}

fn indexed(index: &Index) -> Vec<(ObjectKey, IndexedObject)> {
    let kinds = INTERPRETATION_KINDS.into_iter();
    kinds.flat_map(|kind| index.indexed(&kind)).collect()
}

fn versions(indexed: &[(ObjectKey, IndexedObject)]) -> BTreeMap<ObjectKey, Option<Arc<str>>> {
    let versions = indexed.iter();
    versions
        .map(|(key, object)| (key.clone(), object.version().map(Into::into)))
        .collect()
}

fn previous_in_use(problems: &[impl Display]) -> String {
    with_problems(
        "the previous version stays in use, since this one cannot be used",
        problems,
    )
}

fn with_problems(what: &str, problems: &[impl Display]) -> String {
    format!("{what}: {}", list(problems))
}

fn list(items: &[impl Display]) -> String {
    shortened(tidied(&PROBLEMS.summarize(items)), LONGEST)
}

/// Reports whether a customization, even an invalid one, defines an operation and may select objects of that
/// kind.
fn may_answer(customization: &Value, operation: Operation, object: &Value) -> bool {
    let field = CustomizationRules::field(operation);
    if customization["spec"]["customizations"].get(field).is_none() {
        return false;
    }
    let kind = object::text(object, "/kind");
    let single = customization.pointer("/spec/target").into_iter();
    let targets = single.chain(object::items(customization, "/spec/targets"));
    targets.into_iter().any(|target| {
        let kinds = object::items(target, "/kinds").iter();
        let named = kinds.chain(target.get("kind")).map(Value::as_str);
        named.into_iter().any(|named| named == kind || named == Some("*"))
    })
}
