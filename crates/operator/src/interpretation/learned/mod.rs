//! The customizations and webhooks of a cluster, as far as they were read.

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

use super::asked_webhooks::AskedWebhooks;

/// The kinds that say how objects are interpreted, or by whom. The watches of the last one are those of targets of trust bundles, too.
pub(crate) const INTERPRETATION_KINDS: [Kind; 3] = [
    kinds::RESOURCE_INTERPRETER_CUSTOMIZATION,
    kinds::RESOURCE_INTERPRETATION,
    kinds::RESOURCE_INTERPRETER_WEBHOOK_CONFIGURATION,
];

/// Which customizations and webhooks were read last, and what is wrong with them.
#[derive(Default)]
pub(super) struct Learned {
    /// Whether anything was read.
    is_read: bool,
    /// Each object that was there, in the version in which it was read.
    versions: BTreeMap<ObjectKey, Option<Arc<str>>>,
    /// What is wrong with them.
    problems: BTreeMap<(ObjectKey, InterpretationProblem), String>,
    /// Those customizations that say nothing at all.
    unusable: Vec<UnusableCustomization>,
    /// The kinds that could not be listed.
    unlisted: Vec<Kind>,
}

/// A customization that cannot be used.
pub(super) struct UnusableCustomization {
    object: Arc<Value>,
    /// Which it is, and why it is not used.
    pub(super) message: String,
}

/// A customization, or a configuration of webhooks, of which something else is wrong than before.
#[derive(Debug)]
pub(crate) struct InterpretationNews {
    /// Which.
    pub(crate) object: Arc<Value>,
    /// What is wrong with it.
    pub(crate) problem: InterpretationProblem,
    /// The same, in words.
    pub(crate) message: String,
}

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum InterpretationProblem {
    /// A customization cannot be used as it is.
    Customization,
    /// Others are asked instead of a customization.
    Overruled,
    /// A configuration of webhooks cannot be used as it is.
    Webhook,
    /// Others are asked instead of a webhook.
    Shadowed,
}

/// How a message lists problems.
const PROBLEMS: Listing = Listing {
    most: 5,
    separator: "; ",
    way_to_rest: "",
};

/// The most bytes of what is wrong with an object.
const LONGEST: usize = 1024;

// === impl Learned ===

impl Learned {
    /// Whether there is neither any customization nor any webhook.
    pub(super) fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }

    /// The kinds of which it is not known which objects there are.
    pub(super) fn unlisted(&self) -> &[Kind] {
        &self.unlisted
    }

    /// What cannot be used and may answer an operation for an object.
    pub(super) fn unusable_for(
        &self,
        operation: Operation,
        object: &Value,
    ) -> Option<&UnusableCustomization> {
        self.unusable
            .iter()
            .find(|unusable| may_answer(&unusable.object, operation, object))
    }

    /// Whether what the watches show was read already.
    pub(super) fn is_current(&self, index: &Index, unlisted: &[Kind]) -> bool {
        self.is_read && self.unlisted == unlisted && versions(&seen(index)) == self.versions
    }

    /// Reads what the watches show. What is news of it is to be told.
    pub(super) fn next(
        &self,
        index: &Index,
        unlisted: Vec<Kind>,
        customizations: &Customizations,
        webhooks: &AskedWebhooks,
    ) -> (Self, Vec<InterpretationNews>) {
        let seen = seen(index);
        let mut learned = Self {
            is_read: true,
            versions: versions(&seen),
            unlisted,
            ..Self::default()
        };
        let (of_webhooks, of_customizations): (Vec<_>, Vec<_>) =
            seen.into_iter().partition(|(key, _)| is_of_webhooks(key));
        let mut news = Vec::new();
        let objects = read(&of_customizations);
        let states = customizations.replace(&objects);
        let overruled = customizations.overruled();
        for (((key, _), object), state) in of_customizations.into_iter().zip(objects).zip(states) {
            let object = Arc::new(object);
            let name = key.to_string();
            let by: Vec<_> = overruled
                .iter()
                .filter(|overruled| overruled.customization == name)
                .collect();
            if !by.is_empty() {
                let problem = InterpretationProblem::Overruled;
                news.extend(self.news(&mut learned, key.clone(), object.clone(), problem, listed(&by)));
            }
            if let Some((message, is_kept)) = unused(state) {
                if !is_kept {
                    learned.unusable.push(UnusableCustomization {
                        object: object.clone(),
                        message: format!("{key} {message}"),
                    });
                }
                let problem = InterpretationProblem::Customization;
                news.extend(self.news(&mut learned, key, object, problem, message));
            }
        }
        let objects = read(&of_webhooks);
        let states = webhooks.replace(&objects);
        for (((key, _), object), state) in of_webhooks.into_iter().zip(objects).zip(states) {
            let object = Arc::new(object);
            for (problem, message) in unasked(state) {
                news.extend(self.news(&mut learned, key.clone(), object.clone(), problem, message));
            }
        }
        let gone = self
            .versions
            .keys()
            .filter(|key| is_of_webhooks(key) && !learned.versions.contains_key(key));
        for key in gone {
            webhooks.forget(&key.name);
        }
        (learned, news)
    }

    /// Notes in what is `learned` what is wrong with an object; it is news where that was not so.
    fn news(
        &self,
        learned: &mut Self,
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
        learned.problems.insert(known, message);
        news
    }
}

// === impl InterpretationProblem ===

impl InterpretationProblem {
    /// The reason of the event that tells it.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Customization => "CustomizationUnusable",
            Self::Overruled => "CustomizationOverruled",
            Self::Webhook => "WebhookUnusable",
            Self::Shadowed => "WebhookShadowed",
        }
    }
}

fn is_of_webhooks(key: &ObjectKey) -> bool {
    Kind::from_key(key) == kinds::RESOURCE_INTERPRETER_WEBHOOK_CONFIGURATION
}

fn read(seen: &[(ObjectKey, IndexedObject)]) -> Vec<Value> {
    let objects = seen.iter();
    objects.map(|(_, object)| Value::clone(&object.read())).collect()
}

/// Why a customization is not used as it is, and whether it is used as it was.
fn unused(state: CustomizationState) -> Option<(String, bool)> {
    match state {
        CustomizationState::Used => None,
        CustomizationState::Kept(problems) => Some((kept(&problems), true)),
        CustomizationState::Unusable(problems) => Some((said("cannot be used", &problems), false)),
    }
}

/// Why webhooks are not asked as their configuration says.
fn unasked(state: WebhookConfigurationState) -> Vec<(InterpretationProblem, String)> {
    let unusable = match state.usage {
        WebhookUsage::Used => None,
        WebhookUsage::Kept(problems) => Some(kept(&problems)),
        WebhookUsage::Failing(problems) => Some(said("has webhooks that cannot be called", &problems)),
        WebhookUsage::Unusable(problems) => Some(said("cannot be used", &problems)),
    };
    let shadowed = (!state.shadowed.is_empty()).then(|| listed(&state.shadowed));
    let unusable = unusable.map(|message| (InterpretationProblem::Webhook, message));
    let shadowed = shadowed.map(|message| (InterpretationProblem::Shadowed, message));
    unusable.into_iter().chain(shadowed).collect()
}

fn seen(index: &Index) -> Vec<(ObjectKey, IndexedObject)> {
    let kinds = INTERPRETATION_KINDS.into_iter();
    kinds.flat_map(|kind| index.indexed(&kind)).collect()
}

fn versions(seen: &[(ObjectKey, IndexedObject)]) -> BTreeMap<ObjectKey, Option<Arc<str>>> {
    let versions = seen.iter();
    versions
        .map(|(key, object)| (key.clone(), object.version().map(Into::into)))
        .collect()
}

fn kept(problems: &[impl Display]) -> String {
    said(
        "is used as it was before, since it cannot be used as it is",
        problems,
    )
}

fn said(what: &str, problems: &[impl Display]) -> String {
    format!("{what}: {}", listed(problems))
}

fn listed(items: &[impl Display]) -> String {
    shortened(tidied(&PROBLEMS.summarize(items)), LONGEST)
}

/// Whether a customization, whatever is wrong with it, says something for an operation, and may be for objects of that kind.
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
