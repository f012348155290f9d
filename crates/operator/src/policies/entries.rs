//! The webhook entries that policies need: by failure policy, and for all objects or those of some
//! namespaces.
//!
//! Each request is sent once, however many policies select it: the server that receives it evaluates all of
//! them, in their order. So each entry excludes what an earlier one selects, and entries with failure policy
//! `Fail` come first.

use std::collections::{BTreeMap, BTreeSet};

use policy::{AdmissionOperation, CompiledPolicy, PolicyKind, api::FailurePolicyType};

/// The requests that are sent with one failure policy, for all objects or those of some namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WebhookEntry {
    /// The name of the entry, in the name of its webhook.
    pub(super) name: &'static str,
    pub(super) failure_policy: &'static str,
    pub(super) namespaces: Option<BTreeSet<String>>,
    /// The operations to send for each kind.
    pub(super) kinds: BTreeMap<EntryKind, BTreeSet<&'static str>>,
}

/// A kind of objects that an entry selects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EntryKind {
    /// Every kind.
    All,
    /// The kind with this apiVersion and name.
    Named(String, String),
}

/// The names and failure policies of the entries, in order: entries for all objects come before those for
/// namespaces.
const NAMES: [(&str, FailurePolicyType, bool); 4] = [
    ("fail", FailurePolicyType::Fail, false),
    ("fail.namespaced", FailurePolicyType::Fail, true),
    ("ignore", FailurePolicyType::Ignore, false),
    ("ignore.namespaced", FailurePolicyType::Ignore, true),
];

const OPERATIONS: [AdmissionOperation; 4] = [
    AdmissionOperation::Create,
    AdmissionOperation::Update,
    AdmissionOperation::Delete,
    AdmissionOperation::Connect,
];

/// Returns the entries for the policies that override objects, or for those that validate them. It returns no
/// empty entry.
pub(super) fn entries(policies: &[&CompiledPolicy], validating: bool) -> Vec<WebhookEntry> {
    let policies = policies
        .iter()
        .filter(|policy| (policy.key().kind == PolicyKind::ClusterValidatePolicy) == validating);
    let mut entries: Vec<WebhookEntry> = Vec::new();
    for (name, failure_policy, is_namespaced) in NAMES {
        let mut entry = WebhookEntry {
            name,
            failure_policy: match failure_policy {
                FailurePolicyType::Fail => "Fail",
                FailurePolicyType::Ignore => "Ignore",
            },
            namespaces: is_namespaced.then(BTreeSet::new),
            kinds: BTreeMap::new(),
        };
        let own = policies.clone().filter(|policy| {
            policy.failure_policy() == failure_policy && policy.key().namespace.is_empty() != is_namespaced
        });
        for policy in own {
            entry.add(policy, validating);
        }
        for earlier in &entries {
            entry.exclude(earlier);
        }
        if !entry.kinds.is_empty() {
            entries.push(entry);
        }
    }
    entries
}

impl WebhookEntry {
    fn add(&mut self, policy: &CompiledPolicy, validating: bool) {
        // A deleted object cannot be overridden.
        let operations: BTreeSet<_> = OPERATIONS
            .into_iter()
            .filter(|operation| validating || *operation != AdmissionOperation::Delete)
            .filter(|operation| policy.applies_to(*operation))
            .map(AdmissionOperation::name)
            .collect();
        if operations.is_empty() {
            return;
        }
        if let Some(namespaces) = &mut self.namespaces {
            namespaces.insert(policy.key().namespace.clone());
        }
        let mut kinds: Vec<_> = policy
            .kinds()
            .map(|(api_version, kind)| EntryKind::Named(api_version.to_owned(), kind.to_owned()))
            .collect();
        if kinds.is_empty() {
            kinds.push(EntryKind::All);
        }
        for kind in kinds {
            self.kinds.entry(kind).or_default().extend(&operations);
        }
    }

    /// Removes the kinds that `earlier` selects in all namespaces of this entry.
    fn exclude(&mut self, earlier: &Self) {
        let covers_namespaces = match (&earlier.namespaces, &self.namespaces) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(earlier), Some(own)) => own.is_subset(earlier),
        };
        if !covers_namespaces {
            return;
        }
        for (kind, operations) in &mut self.kinds {
            for earlier_kind in [&EntryKind::All, kind] {
                if let Some(earlier_operations) = earlier.kinds.get(earlier_kind) {
                    operations.retain(|operation| !earlier_operations.contains(operation));
                }
            }
        }
        self.kinds.retain(|_, operations| !operations.is_empty());
    }

    /// Reports whether a request can match both this entry and an `earlier` one.
    pub(super) fn overlaps(&self, earlier: &Self) -> bool {
        let is_disjoint = match (&earlier.namespaces, &self.namespaces) {
            (Some(earlier), Some(own)) => own.is_disjoint(earlier),
            _ => false,
        };
        !is_disjoint
            && self.kinds.iter().any(|(kind, operations)| {
                earlier.kinds.iter().any(|(earlier_kind, earlier_operations)| {
                    kind.can_match(earlier_kind)
                        && operations.intersection(earlier_operations).next().is_some()
                })
            })
    }
}

impl EntryKind {
    /// Returns the API group; `None` for every kind.
    pub(super) fn group(&self) -> Option<&str> {
        match self {
            Self::All => None,
            Self::Named(api_version, _) => Some(api_version.split_once('/').map_or("", |(group, _)| group)),
        }
    }

    /// Reports whether both can select the same object. Versions of a kind select the same objects.
    fn can_match(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Named(_, own), Self::Named(_, others)) => own == others && self.group() == other.group(),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use policy::Engines;
    use serde_json::{Value, json};

    use super::*;

    fn policy(
        kind: &str,
        namespace: &str,
        failure_policy: &str,
        kinds: &[&str],
        operations: &[&str],
    ) -> CompiledPolicy {
        let selectors: Vec<_> = kinds
            .iter()
            .map(|kind| json!({"apiVersion": "v1", "kind": kind}))
            .collect();
        let (list, rule) = if kind == "ClusterValidatePolicy" {
            (
                "validateRules",
                json!({"targetOperations": operations, "cue": "a"}),
            )
        } else {
            (
                "overrideRules",
                json!({"targetOperations": operations, "overriders": {"cue": "a"}}),
            )
        };
        let mut policy: Value = json!({
            "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": kind, "metadata": {"name": "a"},
            "spec": {"failurePolicy": failure_policy, "resourceSelectors": selectors, list: [rule]},
        });
        if !namespace.is_empty() {
            policy["metadata"]["namespace"] = namespace.into();
        }
        CompiledPolicy::compile(&policy, &Engines::default()).unwrap()
    }

    fn describe(entries: &[WebhookEntry]) -> Vec<String> {
        let kind = |kind: &EntryKind| match kind {
            EntryKind::All => "*".to_owned(),
            EntryKind::Named(_, kind) => kind.clone(),
        };
        entries
            .iter()
            .map(|entry| {
                let kinds: Vec<_> = entry
                    .kinds
                    .iter()
                    .map(|(of, operations)| format!("{} {operations:?}", kind(of)))
                    .collect();
                format!("{} {}", entry.name, kinds.join(" "))
            })
            .collect()
    }

    #[test]
    fn an_entry_excludes_what_earlier_entries_select() {
        let policies = [
            policy("ClusterOverridePolicy", "", "Fail", &["Pod"], &["CREATE"]),
            policy(
                "ClusterOverridePolicy",
                "",
                "Ignore",
                &["Pod", "Secret"],
                &["CREATE"],
            ),
            policy(
                "OverridePolicy",
                "n",
                "Ignore",
                &["Pod", "ConfigMap"],
                &["UPDATE", "CREATE"],
            ),
            policy("ClusterValidatePolicy", "", "Ignore", &[], &["DELETE"]),
        ];
        let overriding = entries(&policies.each_ref(), false);
        assert_eq!(
            describe(&overriding),
            [
                r#"fail Pod {"CREATE"}"#,
                r#"ignore Secret {"CREATE"}"#,
                r#"ignore.namespaced ConfigMap {"CREATE", "UPDATE"} Pod {"UPDATE"}"#,
            ]
        );
        for (index, entry) in overriding.iter().enumerate() {
            assert!(overriding[..index].iter().all(|earlier| !entry.overlaps(earlier)));
        }
        assert_eq!(
            describe(&entries(&policies.each_ref(), true)),
            [r#"ignore * {"DELETE"}"#]
        );
    }

    #[test]
    fn entries_overlap_where_rules_cannot_exclude() {
        let policies = [
            policy("OverridePolicy", "n", "Fail", &["Pod"], &["CREATE"]),
            policy("ClusterOverridePolicy", "", "Ignore", &[], &["*"]),
        ];
        let entries = entries(&policies.each_ref(), false);
        assert_eq!(
            describe(&entries),
            [
                r#"fail.namespaced Pod {"CREATE"}"#,
                r#"ignore * {"CONNECT", "CREATE", "UPDATE"}"#
            ]
        );
        assert!(entries[1].overlaps(&entries[0]));
    }

    #[test]
    fn without_policies_there_are_no_entries() {
        assert_eq!(entries(&[], false), []);
        let deleting = policy("ClusterOverridePolicy", "", "Fail", &["Pod"], &["DELETE"]);
        assert_eq!(
            entries(&[&deleting], false),
            [],
            "an override policy does not need deletions"
        );
    }
}
