//! Compares CRDs.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    finding::{Finding, Findings},
    policy::{Enforcement, Policy},
    rule::UpgradeRule,
    versions, whole,
};
use crate::{is_served, stored_versions, version_name};

/// CustomResourceDefinitions by `metadata.name`.
pub type Crds = BTreeMap<String, Value>;

/// What the change of the CustomResourceDefinition `crd` from `old`, as it is in the cluster or in a file, to `new`
/// breaks, ordered by version and field.
///
/// # Guarantees
///
/// - A CRD compared with itself breaks nothing, and so does one of which only texts, orders of sets and the like change.
/// - It ends on any input, and keeps a bounded number of findings. What is beyond the bound is reported as
///   [`UpgradeRule::Unhandled`] and refused, whatever the policy.
/// - No object is looked at: that is what a [`Trial`](super::Trial) is for.
pub fn compare(crd: &str, old: &Value, new: &Value, policy: &Policy) -> Vec<Finding> {
    if policy.ignores_everything() {
        return Vec::new();
    }
    let mut findings = Findings::new(crd, policy);
    whole::compare(old, new, &mut findings);
    versions::compare_same(old, new, |_| true, &mut findings);
    let mut findings = findings.finish();
    findings.extend(versions::compare_served(crd, old, new, policy));
    findings.sort();
    findings
}

/// What the change back from `old`, as it is in the cluster, to `new` breaks, which was there before an upgrade that did
/// not get through. What that upgrade has brought is promised to nobody: stored objects alone can rely on it, and these
/// are tried ([`Trial`](super::Trial)). So only those schemas are compared whose objects cannot be read, since they are not served.
pub fn compare_back(crd: &str, old: &Value, new: &Value, policy: &Policy) -> Vec<Finding> {
    if policy.ignores_everything() {
        return Vec::new();
    }
    let mut findings = Findings::new(crd, policy);
    whole::compare(old, new, &mut findings);
    let stored = stored_versions(old);
    let is_unreadable = |version: &Value| !is_served(version) && stored.contains(&version_name(version));
    versions::compare_same(old, new, is_unreadable, &mut findings);
    findings.finish()
}

/// What the change from all of `old` to all of `new` breaks. CRDs that are new break nothing.
pub fn compare_all(old: &Crds, new: &Crds, policy: &Policy) -> Vec<Finding> {
    let mut found = Vec::new();
    for (crd, old) in old {
        match new.get(crd) {
            Some(new) => found.extend(compare(crd, old, new, policy)),
            None => {
                let mut findings = Findings::new(crd, policy);
                findings.add(
                    None,
                    None,
                    UpgradeRule::CrdRemoval,
                    "the CustomResourceDefinition is removed",
                );
                found.extend(findings.finish());
            }
        }
    }
    found
}

/// Whether a finding refuses the change.
pub fn is_refused(findings: &[Finding]) -> bool {
    findings
        .iter()
        .any(|finding| finding.enforcement == Enforcement::Strict)
}
