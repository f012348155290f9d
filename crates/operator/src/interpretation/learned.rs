//! The customizations of a cluster, as far as they were read.

use std::{collections::BTreeMap, sync::Arc};

use interpreter::{
    Operation,
    customization::{CustomizationProblem, CustomizationRules, CustomizationState, Customizations},
};
use serde_json::Value;
use windlass_cluster::{Index, IndexedObject, Kind, kinds};
use windlass_object::{
    ObjectKey, object,
    text::{Listing, shortened, tidied},
};

/// The kinds that say how objects are interpreted.
pub(crate) const CUSTOMIZATION_KINDS: [Kind; 2] = [
    kinds::RESOURCE_INTERPRETER_CUSTOMIZATION,
    kinds::RESOURCE_INTERPRETATION,
];

/// Which customizations were read last, and what is wrong with them.
#[derive(Default)]
pub(super) struct Learned {
    /// Each that was there, in the version in which it was read.
    versions: BTreeMap<ObjectKey, Option<Arc<str>>>,
    /// What is wrong with those that are not used as they are, and whether they are used as they were.
    problems: BTreeMap<ObjectKey, (String, bool)>,
    /// Those that say nothing at all.
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

/// A customization of which something else is wrong than before.
#[derive(Debug)]
pub(crate) struct NewsOfCustomization {
    /// Which.
    pub(crate) object: Arc<Value>,
    /// What is wrong with it.
    pub(crate) message: String,
}

/// How a message lists problems.
const PROBLEMS: Listing = Listing {
    most: 5,
    separator: "; ",
    way_to_rest: "",
};

/// The most bytes of what is wrong with a customization.
const LONGEST: usize = 1024;

// === impl Learned ===

impl Learned {
    /// Whether there is any customization.
    pub(super) fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }

    /// The kinds of which it is not known which customizations there are.
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
        self.unlisted == unlisted && versions(&seen(index)) == self.versions
    }

    /// Reads what the watches show. What is news of it is to be told.
    pub(super) fn next(
        &self,
        index: &Index,
        unlisted: Vec<Kind>,
        customizations: &Customizations,
    ) -> (Self, Vec<NewsOfCustomization>) {
        let seen = seen(index);
        let objects: Vec<Value> = seen
            .iter()
            .map(|(_, object)| Value::clone(&object.read()))
            .collect();
        let states = customizations.replace(&objects);
        let mut learned = Self {
            versions: versions(&seen),
            unlisted,
            ..Self::default()
        };
        let mut news = Vec::new();
        for (((key, _), object), state) in seen.into_iter().zip(objects).zip(states) {
            let (found, is_kept) = match state {
                CustomizationState::Used => continue,
                CustomizationState::Kept(found) => (found, true),
                CustomizationState::Unusable(found) => (found, false),
            };
            let message = message(&found, is_kept);
            let object = Arc::new(object);
            if !is_kept {
                learned.unusable.push(UnusableCustomization {
                    object: object.clone(),
                    message: format!("{key} {message}"),
                });
            }
            let wrong = (message.clone(), is_kept);
            if self.problems.get(&key) != Some(&wrong) {
                news.push(NewsOfCustomization { object, message });
            }
            learned.problems.insert(key, wrong);
        }
        (learned, news)
    }
}

fn seen(index: &Index) -> Vec<(ObjectKey, IndexedObject)> {
    let kinds = CUSTOMIZATION_KINDS.into_iter();
    kinds.flat_map(|kind| index.indexed(&kind)).collect()
}

fn versions(seen: &[(ObjectKey, IndexedObject)]) -> BTreeMap<ObjectKey, Option<Arc<str>>> {
    let versions = seen.iter();
    versions
        .map(|(key, object)| (key.clone(), object.version().map(Into::into)))
        .collect()
}

fn message(problems: &[CustomizationProblem], is_kept: bool) -> String {
    let what = match is_kept {
        true => "is used as it was before, since it cannot be used as it is",
        false => "cannot be used",
    };
    let listed = tidied(&PROBLEMS.of(problems));
    format!("{what}: {}", shortened(listed, LONGEST))
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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_cluster::watch::Watch;

    use super::*;

    fn interpretation(version: &str, kind: &str, condition: Value) -> Value {
        json!({
            "apiVersion": "interpretation.windlass.dev/v1alpha1", "kind": "ResourceInterpretation",
            "metadata": {"name": "widgets", "resourceVersion": version},
            "spec": {
                "targets": [{"apiVersion": "example.com/v1", "kind": kind}],
                "customizations": {"healthInterpretation": {"condition": condition}},
            },
        })
    }

    struct Reader {
        index: Index,
        customizations: Customizations,
        learned: Learned,
    }

    impl Reader {
        fn read(&mut self) -> Vec<NewsOfCustomization> {
            let (learned, news) = self.learned.next(&self.index, Vec::new(), &self.customizations);
            self.learned = learned;
            assert!(self.learned.is_current(&self.index, &[]));
            news
        }

        fn show(&mut self, object: Value) {
            let watch = Watch::all(kinds::RESOURCE_INTERPRETATION);
            self.index.apply(&watch, object);
            assert!(!self.learned.is_current(&self.index, &[]));
        }

        fn unusable(&self, kind: &str) -> Option<&str> {
            let object = json!({"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "a"}});
            let unusable = self.learned.unusable_for(Operation::InterpretHealth, &object)?;
            Some(&unusable.message)
        }
    }

    #[test]
    fn what_is_wrong_with_a_customization_is_told_once() {
        let mut reader = Reader {
            index: Index::new(),
            customizations: Customizations::default(),
            learned: Learned::default(),
        };
        assert!(reader.learned.is_current(&reader.index, &[]) && reader.learned.is_empty());
        reader.show(interpretation("1", "Widget", json!({"type": 1})));
        let news = reader.read();
        assert_eq!(news.len(), 1, "{news:?}");
        assert!(news[0].message.starts_with("cannot be used: spec"), "{news:?}");
        let unusable = reader.unusable("Widget").unwrap();
        assert!(
            unusable.starts_with("ResourceInterpretation widgets cannot be used"),
            "{unusable}"
        );
        assert_eq!(reader.unusable("Gadget"), None);
        assert!(reader.read().is_empty());
        reader.show(interpretation("2", "Widget", json!({"type": 1})));
        assert!(reader.read().is_empty(), "no news");
        reader.show(interpretation("3", "Widget", json!({"type": "Ready"})));
        assert!(reader.read().is_empty());
        assert_eq!(reader.unusable("Widget"), None);
        reader.show(interpretation("4", "Widget", json!({"type": 1})));
        let news = reader.read();
        assert!(
            news[0].message.starts_with("is used as it was before"),
            "{news:?}"
        );
        assert_eq!(reader.unusable("Widget"), None);
    }

    #[test]
    fn kinds_that_cannot_be_listed_are_known_from_then_on() {
        let (index, customizations) = (Index::new(), Customizations::default());
        let unlisted = vec![kinds::RESOURCE_INTERPRETATION];
        let learned = Learned::default();
        assert!(!learned.is_current(&index, &unlisted));
        let (learned, _) = learned.next(&index, unlisted.clone(), &customizations);
        assert!(learned.is_current(&index, &unlisted) && !learned.is_current(&index, &[]));
        assert_eq!(learned.unlisted(), unlisted);
    }

    #[test]
    fn what_cannot_be_used_may_be_for_its_kinds_and_operations() {
        for (target, expected) in [
            (json!({"target": {"kind": "Widget"}}), true),
            (json!({"target": {"kind": "Gadget"}}), false),
            (
                json!({"targets": [{"kind": "Gadget"}, {"kinds": ["A", "Widget"]}]}),
                true,
            ),
            (json!({"targets": [{"kind": "*"}]}), true),
            (json!({"targets": 3, "target": "Widget"}), false),
        ] {
            let mut customization = json!({ "spec": target });
            customization["spec"]["customizations"] = json!({"retention": 3});
            let widget = json!({"kind": "Widget"});
            let answers = |operation| may_answer(&customization, operation, &widget);
            assert_eq!(answers(Operation::Retain), expected, "{target}");
            assert!(!answers(Operation::InterpretHealth));
        }
    }
}
