//! Which requests policies have to be asked about: by failure policy, and for all objects or those of some namespaces.
//!
//! A request is asked about once, whichever policies are for it: whoever is asked evaluates all of them, in their order. So each
//! entry leaves out what an earlier one takes, and those of policies that must not fail come first.

use std::collections::{BTreeMap, BTreeSet};

use policy::{AdmissionOperation, CompiledPolicy, PolicyKind, api::FailurePolicyType};

/// What is asked about with one failure policy, for all objects or for those of some namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WebhookEntry {
    /// Its name, and those of the namespaces; none for all objects.
    pub(super) name: &'static str,
    pub(super) failure_policy: &'static str,
    pub(super) namespaces: Option<BTreeSet<String>>,
    /// The operations that are asked about, for each kind.
    pub(super) kinds: BTreeMap<EntryKind, BTreeSet<&'static str>>,
}

/// The kinds of an entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EntryKind {
    /// Any.
    All,
    /// The one with this apiVersion and name.
    Named(String, String),
}

/// The names of the entries with their failure policies, in their order: those for all objects before those of namespaces.
const NAMES: [(&str, FailurePolicyType, bool); 4] = [
    ("fail", FailurePolicyType::Fail, false),
    ("fail.namespaced", FailurePolicyType::Fail, true),
    ("ignore", FailurePolicyType::Ignore, false),
    ("ignore.namespaced", FailurePolicyType::Ignore, true),
];

/// All operations.
const OPERATIONS: [AdmissionOperation; 4] = [
    AdmissionOperation::Create,
    AdmissionOperation::Update,
    AdmissionOperation::Delete,
    AdmissionOperation::Connect,
];

/// The entries for those of `policies` that override objects, or for those that validate them; none that is empty.
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
            entry.leave_to(earlier);
        }
        if !entry.kinds.is_empty() {
            entries.push(entry);
        }
    }
    entries
}

// === impl WebhookEntry ===

impl WebhookEntry {
    fn add(&mut self, policy: &CompiledPolicy, validating: bool) {
        // Nothing is left of what is deleted.
        let operations: BTreeSet<_> = OPERATIONS
            .into_iter()
            .filter(|operation| validating || *operation != AdmissionOperation::Delete)
            .filter(|operation| policy.acts_on(*operation))
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

    /// Leaves out the kinds that an earlier entry takes in all namespaces of this one.
    fn leave_to(&mut self, earlier: &Self) {
        let takes_everywhere = match (&earlier.namespaces, &self.namespaces) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(earlier), Some(own)) => own.is_subset(earlier),
        };
        if !takes_everywhere {
            return;
        }
        for (kind, operations) in &mut self.kinds {
            for taker in [&EntryKind::All, kind] {
                if let Some(taken) = earlier.kinds.get(taker) {
                    operations.retain(|operation| !taken.contains(operation));
                }
            }
        }
        self.kinds.retain(|_, operations| !operations.is_empty());
    }

    /// Whether a request that this entry takes may be one of an `earlier` entry.
    pub(super) fn overlaps(&self, earlier: &Self) -> bool {
        let is_disjoint = match (&earlier.namespaces, &self.namespaces) {
            (Some(earlier), Some(own)) => own.is_disjoint(earlier),
            _ => false,
        };
        !is_disjoint
            && self.kinds.iter().any(|(kind, operations)| {
                earlier.kinds.iter().any(|(taker, taken)| {
                    kind.may_be(taker) && operations.intersection(taken).next().is_some()
                })
            })
    }
}

// === impl EntryKind ===

impl EntryKind {
    /// The group of its objects; `None` for any.
    pub(super) fn group(&self) -> Option<&str> {
        match self {
            Self::All => None,
            Self::Named(api_version, _) => Some(api_version.split_once('/').map_or("", |(group, _)| group)),
        }
    }

    /// Whether one object may be of both: versions of a kind are of the same objects.
    fn may_be(&self, other: &Self) -> bool {
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

    fn told(entries: &[WebhookEntry]) -> Vec<String> {
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
    fn what_one_entry_takes_is_left_out_of_later_ones() {
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
            told(&overriding),
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
            told(&entries(&policies.each_ref(), true)),
            [r#"ignore * {"DELETE"}"#]
        );
    }

    #[test]
    fn what_cannot_be_left_out_by_rules_overlaps() {
        let policies = [
            policy("OverridePolicy", "n", "Fail", &["Pod"], &["CREATE"]),
            policy("ClusterOverridePolicy", "", "Ignore", &[], &["*"]),
        ];
        let entries = entries(&policies.each_ref(), false);
        assert_eq!(
            told(&entries),
            [
                r#"fail.namespaced Pod {"CREATE"}"#,
                r#"ignore * {"CONNECT", "CREATE", "UPDATE"}"#
            ]
        );
        assert!(entries[1].overlaps(&entries[0]));
    }

    #[test]
    fn no_policies_are_no_entries() {
        assert_eq!(entries(&[], false), []);
        let deleting = policy("ClusterOverridePolicy", "", "Fail", &["Pod"], &["DELETE"]);
        assert_eq!(entries(&[&deleting], false), [], "what is deleted is not changed");
    }
}
