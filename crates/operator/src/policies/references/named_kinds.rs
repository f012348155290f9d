//! The kinds that policies refer to.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_cluster::{Kind, kinds};
use windlass_object::object;

/// The fields that may contain references: the lists of rules, and fields of each rule.
pub(in super::super) const REFERENCES: [(&str, &str); 3] = [
    ("overrideRules", "overriders.template.valueRef"),
    ("validateRules", "template.condition.dataRef"),
    ("validateRules", "template.condition.valueRef"),
];

/// Returns the references of a policy, each with its field path.
pub(in super::super) fn references(policy: &Value) -> impl Iterator<Item = (String, &Value)> {
    REFERENCES.into_iter().flat_map(move |(list, place)| {
        let rules = object::items(policy, &format!("/spec/{list}")).iter().enumerate();
        let pointer = format!("/{}", place.replace('.', "/"));
        rules.filter_map(move |(index, rule)| {
            let reference = rule.pointer(&pointer)?;
            Some((format!("spec.{list}[{index}].{place}"), reference))
        })
    })
}

/// Returns the kinds of objects to watch for a policy. Secrets are read one by one: a watch would read all of
/// them.
pub(super) fn named_kinds(policy: &Value) -> BTreeSet<Kind> {
    let named = references(policy).filter_map(|(_, reference)| {
        let text = |pointer| object::text(reference, pointer).unwrap_or_default().to_owned();
        (text("/from") == "k8s").then(|| Kind::named(text("/k8s/apiVersion"), text("/k8s/kind")))
    });
    named
        .filter(|kind| *kind != kinds::SECRET && !kind.kind.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn named_kinds_are_referenced_kinds_except_secrets() {
        let k8s = |kind: &str| json!({"from": "k8s", "k8s": {"apiVersion": "v1", "kind": kind}});
        let policy = json!({"spec": {
            "overrideRules": [
                {"overriders": {"template": {"valueRef": k8s("ConfigMap")}}},
                {"overriders": {"template": {"valueRef": k8s("Secret")}}},
            ],
            "validateRules": [{"template": {"condition": {"dataRef": k8s("Node"), "valueRef": {"from": "owner"}}}}],
        }});
        let expected = [kinds::CONFIG_MAP, Kind::new("v1", "Node")];
        assert_eq!(named_kinds(&policy), BTreeSet::from(expected));
        assert_eq!(references(&policy).count(), 4);
    }
}
