//! The binding of a policy: whether it is to be on, and what switches it.

use json_patch::Patch;
use serde_json::{Value, json};
use windlass_cluster::{Change, Index, Kind, kinds, watch::Watch};
use windlass_object::{ObjectKey, names, object, patch};

use super::NAME;

/// A binding of a policy, and what does the same.
pub(super) struct PolicyBinding {
    pub(super) binding: Kind,
    webhooks: Kind,
}

/// Defaults and refusals are switched each by itself: webhooks that do the one need not do the other.
pub(super) static BINDINGS: [PolicyBinding; 2] = [
    PolicyBinding {
        binding: Kind::new(
            "admissionregistration.k8s.io/v1",
            "MutatingAdmissionPolicyBinding",
        ),
        webhooks: kinds::MUTATING_WEBHOOK_CONFIGURATION,
    },
    PolicyBinding {
        binding: Kind::new(
            "admissionregistration.k8s.io/v1",
            "ValidatingAdmissionPolicyBinding",
        ),
        webhooks: kinds::VALIDATING_WEBHOOK_CONFIGURATION,
    },
];

/// The group and the plural of what the policies are about.
pub(super) const GROUP: &str = "runtime.cluster.x-k8s.io";
pub(super) const PLURAL: &str = "extensionconfigs";

/// What defines ExtensionConfigs. Where it is not, policies for them are of no interest.
pub(super) fn definition() -> ObjectKey {
    kinds::CUSTOM_RESOURCE_DEFINITION.object(None, &format!("{PLURAL}.{GROUP}"))
}

/// Whether a webhook configuration has a rule for ExtensionConfigs, by name: whoever is asked about everything does not do what
/// Cluster API does. Windlass has none of its own.
fn names_extension_configs(configuration: &Value) -> bool {
    let has = |rule: &Value, field: &str, named: &[&str]| {
        let mut items = object::items(rule, field).iter().filter_map(Value::as_str);
        items.any(|item| named.contains(&item))
    };
    object::items(configuration, "/webhooks")
        .iter()
        .flat_map(|webhook| object::items(webhook, "/rules"))
        .any(|rule| {
            has(rule, "/apiGroups", &[GROUP])
                && has(rule, "/resources", &[PLURAL])
                && has(rule, "/operations", &["CREATE", "UPDATE", "*"])
        })
}

/// What switches a binding on or off as it was read; [`None`] where that is so already. What somebody else selects stays.
pub(super) fn switch(binding: &Value, is_on: bool) -> Option<Patch> {
    let matched = binding.pointer("/spec/matchResources");
    let labels = matched.and_then(|matched| matched.pointer("/objectSelector/matchLabels"));
    let is_off = labels.is_some_and(|labels| labels.get(names::SWITCHED_OFF).is_some());
    if is_on != is_off {
        return None;
    }
    let mut matched = matched.cloned().unwrap_or_else(|| json!({}));
    let label = if is_on { Value::Null } else { "true".into() };
    let change = json!({"objectSelector": {"matchLabels": {names::SWITCHED_OFF: label}}});
    json_patch::merge(&mut matched, &change);
    let version = &binding["metadata"]["resourceVersion"];
    Some(patch::guarded(
        &[("/metadata/resourceVersion", version)],
        "/spec/matchResources",
        &matched,
    ))
}

// === impl PolicyBinding ===

impl PolicyBinding {
    pub(super) fn key(&self) -> ObjectKey {
        self.binding.object(None, NAME)
    }

    pub(super) fn watch(&self) -> Watch {
        Watch::all(self.webhooks.clone())
    }

    pub(super) fn is_concerned(&self, change: &Change) -> bool {
        Kind::from_key(&change.key) == self.webhooks
            && change
                .versions()
                .any(|configuration| names_extension_configs(&configuration))
    }

    /// The webhook configuration that does the same, if there is one.
    pub(super) fn webhooks_instead(&self, index: &Index) -> Option<ObjectKey> {
        let found = index.select(&self.webhooks, names_extension_configs);
        found.into_keys().next()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Webhooks with a rule for these.
    pub(in super::super) fn configuration(groups: &[&str], resources: &[&str], operations: &[&str]) -> Value {
        json!({"webhooks": [{"name": "other", "rules": []}, {"rules": [
            {"apiGroups": groups, "resources": resources, "operations": operations},
        ]}]})
    }

    #[test]
    fn only_who_is_asked_about_extension_configs_by_name_does_the_same() {
        for (groups, resources, operations, expected) in [
            (&[GROUP][..], &[PLURAL][..], &["CREATE", "UPDATE"][..], true),
            (&["apps", GROUP], &["clusters", PLURAL], &["*"], true),
            (&[GROUP], &[PLURAL], &["DELETE"], false),
            (&[GROUP], &["extensionconfigs/status"], &["*"], false),
            (&["apps"], &[PLURAL], &["*"], false),
            (&["*"], &["*"], &["*"], false),
        ] {
            let configuration = configuration(groups, resources, operations);
            assert_eq!(
                names_extension_configs(&configuration),
                expected,
                "{configuration}"
            );
        }
    }

    fn switched(mut binding: Value, is_on: bool) -> Option<Value> {
        let patch = switch(&binding, is_on)?;
        json_patch::patch(&mut binding, &patch).unwrap();
        assert_eq!(switch(&binding, is_on), None, "it is so");
        Some(binding)
    }

    #[test]
    fn a_binding_is_off_while_it_selects_what_nobody_has() {
        let label = || json!({names::SWITCHED_OFF: "true"});
        let binding = json!({"metadata": {"resourceVersion": "7"}, "spec": {"policyName": NAME}});
        assert_eq!(switched(binding.clone(), true), None);
        let off = switched(binding, false).unwrap();
        let matched = &off["spec"]["matchResources"];
        assert_eq!(*matched, json!({"objectSelector": {"matchLabels": label()}}));

        let theirs = json!({
            "metadata": {"resourceVersion": "7"},
            "spec": {"matchResources": {
                "namespaceSelector": {}, "matchPolicy": "Equivalent",
                "objectSelector": {"matchLabels": {"team": "a"}, "matchExpressions": []},
            }},
        });
        let off = switched(theirs.clone(), false).unwrap();
        let labels = &off["spec"]["matchResources"]["objectSelector"]["matchLabels"];
        assert_eq!(*labels, json!({"team": "a", names::SWITCHED_OFF: "true"}));
        assert_eq!(switched(off, true), Some(theirs));
    }

    #[test]
    fn a_binding_that_was_written_meanwhile_is_left_alone() {
        let binding = |version: &str| json!({"metadata": {"resourceVersion": version}, "spec": {}});
        let patch = switch(&binding("7"), false).unwrap();
        assert!(json_patch::patch(&mut binding("8"), &patch).is_err());
    }
}
