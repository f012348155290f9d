//! The binding of a policy, and the patch that enables or disables it.

use json_patch::Patch;
use serde_json::{Value, json};
use windlass_cluster::{Change, Index, Kind, kinds, watch::Watch};
use windlass_object::{ObjectKey, names, object, patch};

use super::NAME;

/// The binding of a policy, and the kind of webhook configuration that can replace the policy.
pub(super) struct PolicyBinding {
    pub(super) binding: Kind,
    webhooks: Kind,
}

/// Defaulting and validation are switched separately, since webhooks may exist for only one of them.
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

/// Group and plural name of the resource that the policies apply to.
pub(super) const GROUP: &str = "runtime.cluster.x-k8s.io";
pub(super) const PLURAL: &str = "extensionconfigs";

/// CustomResourceDefinition of ExtensionConfigs. Without it, the policies have no effect.
pub(super) fn definition_key() -> ObjectKey {
    kinds::CUSTOM_RESOURCE_DEFINITION.object(None, &format!("{PLURAL}.{GROUP}"))
}

/// Reports whether a webhook configuration has a rule that names ExtensionConfigs. A rule for all resources
/// does not count, since its webhook does not implement the checks of Cluster API. Windlass itself has no
/// such webhook.
fn has_rule_for_extension_configs(configuration: &Value) -> bool {
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

/// Returns the patch that enables or disables a binding, or [`None`] if there is nothing to change. Keeps
/// selectors of other clients.
pub(super) fn switch_patch(binding: &Value, is_on: bool) -> Option<Patch> {
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

impl PolicyBinding {
    pub(super) fn key(&self) -> ObjectKey {
        self.binding.object(None, NAME)
    }

    pub(super) fn watch(&self) -> Watch {
        Watch::all(self.webhooks.clone())
    }

    pub(super) fn is_affected_by(&self, change: &Change) -> bool {
        Kind::from_key(&change.key) == self.webhooks
            && change
                .versions()
                .any(|configuration| has_rule_for_extension_configs(&configuration))
    }

    /// Returns the webhook configuration that replaces the policy, if any.
    pub(super) fn replacing_webhooks(&self, index: &Index) -> Option<ObjectKey> {
        let found = index.select(&self.webhooks, has_rule_for_extension_configs);
        found.into_keys().next()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A webhook configuration with these rules.
    pub(in super::super) fn configuration(groups: &[&str], resources: &[&str], operations: &[&str]) -> Value {
        json!({"webhooks": [{"name": "other", "rules": []}, {"rules": [
            {"apiGroups": groups, "resources": resources, "operations": operations},
        ]}]})
    }

    #[test]
    fn only_webhooks_that_name_extension_configs_replace_the_policy() {
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
                has_rule_for_extension_configs(&configuration),
                expected,
                "{configuration}"
            );
        }
    }

    fn switched(mut binding: Value, is_on: bool) -> Option<Value> {
        let patch = switch_patch(&binding, is_on)?;
        json_patch::patch(&mut binding, &patch).unwrap();
        assert_eq!(switch_patch(&binding, is_on), None, "nothing to change");
        Some(binding)
    }

    #[test]
    fn a_disabled_binding_selects_a_label_that_no_object_has() {
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
    fn a_binding_that_changed_in_the_meantime_is_not_overwritten() {
        let binding = |version: &str| json!({"metadata": {"resourceVersion": version}, "spec": {}});
        let patch = switch_patch(&binding("7"), false).unwrap();
        assert!(json_patch::patch(&mut binding("8"), &patch).is_err());
    }
}
