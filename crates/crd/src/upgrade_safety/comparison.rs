//! Compares CRDs before and after a change.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    crd_fields,
    finding::{Finding, Findings},
    policy::{Enforcement, Policy},
    rule::UpgradeRule,
    versions,
};
use crate::{is_served, stored_versions, version_name};

/// CustomResourceDefinitions by `metadata.name`.
pub type Crds = BTreeMap<String, Value>;

/// Returns what the change of the CustomResourceDefinition `crd` from `old` (in the cluster or a file) to
/// `new` breaks, ordered by version and field.
///
/// # Guarantees
///
/// - Neither an unchanged CRD nor a change of only documentation, the order of sets and the like has findings.
/// - It terminates on any input and keeps a bounded number of findings. Anything beyond the bound is reported as
///   [`UpgradeRule::Unhandled`] and refused regardless of the policy.
/// - It reads no objects; see [`Trial`](super::Trial).
pub fn compare(crd: &str, old: &Value, new: &Value, policy: &Policy) -> Vec<Finding> {
    if policy.ignores_everything() {
        return Vec::new();
    }
    let mut findings = Findings::new(crd, policy);
    crd_fields::compare(old, new, &mut findings);
    versions::compare_same(old, new, |_| true, &mut findings);
    let mut findings = findings.finish();
    findings.extend(versions::compare_served(crd, old, new, policy));
    findings.sort();
    findings
}

/// Returns what the change back from `old` (in the cluster) to `new` breaks, where `new` is the state before
/// a failed upgrade. Clients cannot rely on what that upgrade added; only stored objects can, and these are
/// tried separately ([`Trial`](super::Trial)). So only schemas of versions that are not served are compared,
/// whose objects cannot be read.
pub fn compare_back(crd: &str, old: &Value, new: &Value, policy: &Policy) -> Vec<Finding> {
    if policy.ignores_everything() {
        return Vec::new();
    }
    let mut findings = Findings::new(crd, policy);
    crd_fields::compare(old, new, &mut findings);
    let stored = stored_versions(old);
    let is_unreadable = |version: &Value| !is_served(version) && stored.contains(&version_name(version));
    versions::compare_same(old, new, is_unreadable, &mut findings);
    findings.finish()
}

/// Returns what the change from all of `old` to all of `new` breaks. New CRDs break nothing.
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

/// Reports whether a finding refuses the change.
pub fn is_refused(findings: &[Finding]) -> bool {
    findings
        .iter()
        .any(|finding| finding.enforcement == Enforcement::Strict)
}
