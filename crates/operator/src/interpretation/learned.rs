//! The customizations of a cluster, as far as they were read.

use std::{collections::BTreeMap, sync::Arc};

use interpreter::customization::{CustomizationProblem, CustomizationState, Customizations};
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

    /// What cannot be used and may be for an object.
    pub(super) fn unusable_for(&self, object: &Value) -> Option<&UnusableCustomization> {
        self.unusable
            .iter()
            .find(|unusable| may_be_for(&unusable.object, object))
    }

    /// Whether what the watches show was read already.
    pub(super) fn is_current(&self, index: &Index) -> bool {
        versions(&seen(index)) == self.versions
    }

    /// Reads what the watches show, unless that was read already. What is news is to be told.
    pub(super) fn read(
        &mut self,
        index: &Index,
        customizations: &Customizations,
    ) -> Vec<NewsOfCustomization> {
        let seen = seen(index);
        let versions = versions(&seen);
        if versions == self.versions {
            return Vec::new();
        }
        self.versions = versions;
        self.take(&seen, customizations)
    }

    fn take(
        &mut self,
        seen: &[(ObjectKey, IndexedObject)],
        customizations: &Customizations,
    ) -> Vec<NewsOfCustomization> {
        let objects: Vec<Value> = seen
            .iter()
            .map(|(_, object)| Value::clone(&object.read()))
            .collect();
        let states = customizations.replace(&objects);
        let (mut news, mut problems) = (Vec::new(), BTreeMap::new());
        self.unusable.clear();
        for (((key, _), object), state) in seen.iter().zip(objects).zip(states) {
            let (found, is_kept) = match state {
                CustomizationState::Used => continue,
                CustomizationState::Kept(found) => (found, true),
                CustomizationState::Unusable(found) => (found, false),
            };
            let message = message(&found, is_kept);
            let object = Arc::new(object);
            if !is_kept {
                self.unusable.push(UnusableCustomization {
                    object: object.clone(),
                    message: format!("{key} {message}"),
                });
            }
            let wrong = (message.clone(), is_kept);
            if self.problems.get(key) != Some(&wrong) {
                news.push(NewsOfCustomization { object, message });
            }
            problems.insert(key.clone(), wrong);
        }
        self.problems = problems;
        news
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

/// Whether a customization, whatever is wrong with it, may be for objects of that kind.
fn may_be_for(customization: &Value, object: &Value) -> bool {
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

    #[test]
    fn what_is_wrong_with_a_customization_is_told_once() {
        let (index, customizations) = (Index::new(), Customizations::default());
        let mut learned = Learned::default();
        let watch = Watch::all(kinds::RESOURCE_INTERPRETATION);
        let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}});
        assert!(learned.read(&index, &customizations).is_empty());
        assert!(learned.is_empty());
        index.apply(&watch, interpretation("1", "Widget", json!({"type": 1})));
        let news = learned.read(&index, &customizations);
        assert_eq!(news.len(), 1, "{news:?}");
        assert!(news[0].message.starts_with("cannot be used: spec"), "{news:?}");
        let unusable = &learned.unusable_for(&widget).unwrap().message;
        assert!(
            unusable.starts_with("ResourceInterpretation widgets cannot be used"),
            "{unusable}"
        );
        let gadget = json!({"kind": "Gadget"});
        assert!(learned.unusable_for(&gadget).is_none());
        assert!(learned.read(&index, &customizations).is_empty());
        index.apply(&watch, interpretation("2", "Widget", json!({"type": 1})));
        assert!(learned.read(&index, &customizations).is_empty(), "no news");
        index.apply(&watch, interpretation("3", "Widget", json!({"type": "Ready"})));
        assert!(learned.read(&index, &customizations).is_empty());
        assert!(learned.unusable_for(&widget).is_none());
        index.apply(&watch, interpretation("4", "Widget", json!({"type": 1})));
        let news = learned.read(&index, &customizations);
        assert!(
            news[0].message.starts_with("is used as it was before"),
            "{news:?}"
        );
        assert!(learned.unusable_for(&widget).is_none());
    }

    #[test]
    fn what_is_for_any_kind_may_be_for_each() {
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
            let customization = json!({ "spec": target });
            assert_eq!(
                may_be_for(&customization, &json!({"kind": "Widget"})),
                expected,
                "{target}"
            );
        }
    }
}
