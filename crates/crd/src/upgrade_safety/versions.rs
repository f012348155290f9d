//! Compares the versions of two CRDs: those with the same name, and those that are served together.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use serde_json::Value;
use windlass_object::object;

use super::{
    Finding, Policy, UpgradeRule,
    constraints::KeywordChange,
    finding::Findings,
    property::{Comparison, unhandled},
};
use crate::{is_converting, is_served};

/// Properties of a version other than its schema, and whether adding one matters.
const FACILITIES: [(&str, &str, bool); 3] = [
    // With a status subresource, writes of the object ignore the status and vice versa.
    ("subresources.status", "/subresources/status", true),
    ("subresources.scale", "/subresources/scale", false),
    ("selectableFields", "/selectableFields", false),
];

/// The rank of a version name (`k8s.io/apimachinery/pkg/version`, `CompareKubeAwareVersionStrings`): stable
/// after beta after alpha, then by number; other names before all of these, in reverse alphabetical order.
type Rank<'a> = (u8, u64, u64, Reverse<&'a str>);

/// Compares versions with the same name if the one in `old` is `concerned`.
pub(super) fn compare_same(
    old: &Value,
    new: &Value,
    concerned: impl Fn(&Value) -> bool,
    findings: &mut Findings<'_>,
) {
    let successors = versions(new);
    for (name, old) in versions(old).into_iter().filter(|(_, old)| concerned(old)) {
        let Some(new) = successors.get(name) else {
            continue;
        };
        for (what, pointer, addition_matters) in FACILITIES {
            let (old, new) = (old.pointer(pointer), new.pointer(pointer));
            if old != new && (old.is_some() || addition_matters) {
                let message = unhandled([KeywordChange::new(what, old, new)]);
                findings.add(Some(name), None, UpgradeRule::Unhandled, message);
            }
        }
        let mut comparison = Comparison {
            version: name,
            new_version: name,
            findings,
        };
        comparison.compare(schema(old), schema(new));
    }
}

/// Returns findings between versions that `new` serves together without conversion: objects are read in one
/// version as they were written in the other. Differences that `old` already has are ignored.
pub(super) fn compare_served(name: &str, old: &Value, new: &Value, policy: &Policy) -> Vec<Finding> {
    let known: BTreeSet<Finding> = served_pairs(name, old, policy).into_iter().collect();
    let mut found = served_pairs(name, new, policy);
    found.retain(|finding| !known.contains(finding));
    found
}

fn served_pairs(name: &str, crd: &Value, policy: &Policy) -> Vec<Finding> {
    if is_converting(crd) {
        return Vec::new();
    }
    let mut served: Vec<(&str, &Value)> = versions(crd)
        .into_iter()
        .filter(|(_, version)| is_served(version))
        .collect();
    served.sort_by_key(|(name, _)| rank(name));
    let mut findings = Findings::new(name, policy);
    for (index, (old_name, old)) in served.iter().enumerate() {
        for (new_name, new) in &served[index + 1..] {
            let mut comparison = Comparison {
                version: &format!("{old_name}->{new_name}"),
                new_version: new_name,
                findings: &mut findings,
            };
            comparison.compare(schema(old), schema(new));
        }
    }
    findings.finish()
}

/// Returns the versions by name; the first one if a name is repeated.
pub(super) fn versions(crd: &Value) -> BTreeMap<&str, &Value> {
    let mut versions = BTreeMap::new();
    for version in crate::versions(crd) {
        if let Some(name) = object::text(version, "/name") {
            versions.entry(name).or_insert(version);
        }
    }
    versions
}

pub(super) fn schema(version: &Value) -> &Value {
    // A missing schema is equivalent to an empty one.
    static NOTHING: Value = Value::Bool(true);
    version
        .pointer("/schema/openAPIV3Schema")
        .filter(|schema| !schema.is_null())
        .unwrap_or(&NOTHING)
}

fn rank(name: &str) -> Rank<'_> {
    let parse = || {
        let rest = name.strip_prefix('v')?;
        let (major, rest) = leading_number(rest)?;
        let (stability, minor) = match rest {
            "" => (3, 0),
            _ => {
                let (stability, rest) = match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
                    (Some(rest), _) => (2, rest),
                    (_, Some(rest)) => (1, rest),
                    _ => return None,
                };
                let (minor, rest) = leading_number(rest)?;
                (stability, rest.is_empty().then_some(minor)?)
            }
        };
        Some((stability, major, minor, Reverse("")))
    };
    parse().unwrap_or((0, 0, 0, Reverse(name)))
}

fn leading_number(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.starts_with('0') {
        return None;
    }
    Some((digits.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_kubernetes_priority() {
        // The example of the Kubernetes documentation on CustomResourceDefinition versions, in reverse order.
        let expected = [
            "foo10",
            "foo1",
            "v11alpha2",
            "v12alpha1",
            "v3beta1",
            "v10beta3",
            "v11beta2",
            "v1",
            "v2",
            "v10",
        ];
        let mut names = expected;
        names.sort_unstable();
        names.sort_by_key(|name| rank(name));
        assert_eq!(names, expected);
    }
}
