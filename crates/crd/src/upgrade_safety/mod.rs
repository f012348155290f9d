//! Whether a CustomResourceDefinition can be changed without breaking clients or stored objects.
//!
//! ```text
//! old, new -> the CRD as a whole          \
//!          -> versions of one name               -> findings -> policy -> refused, warned of or ignored
//!          -> versions that new serves together  /
//!             (schemas property by property, each keyword by its rule)
//! objects  -> tried against the new schemas      /
//! ```
//!
//! Rules, names and texts are those of OLM v1 (`operator-controller`, `rukpak/preflights/crdupgradesafety`, and its engine
//! `sigs.k8s.io/crdify`). Beyond them:
//!
//! - [`UpgradeRule::ServedVersionRemoval`]: clients of a version that goes fail. It is warned of, as it is how a deprecation ends.
//! - [`UpgradeRule::MapType`]: it is warned of, where OLM refuses it as unhandled: published bundles change it in patch releases.
//! - `allOf`, `anyOf`, `not` and everything in them are compared as one value at their field. crdify walks into them by
//!   index, where one that is added goes unseen, and where what tightens a schema below `not` loosens it in truth.
//! - [`UpgradeRule::Unhandled`] is also about subresources and selectable fields of a version, `spec.preserveUnknownFields`, the
//!   group, the kind and its plural: without them fields are lost or clients fail too.
//! - In a file, where no status says what is stored, it is the storage version.
//! - [`UpgradeRule::StoredObjects`]: objects that are there are tried, so that an exception from another rule costs none of them.
//!   Formats other than `date-time` are not looked at.
//! - A removed field is reported once, not again for each field that was below it.
//!
//! What makes no difference is not reported: the order of sets, `1` for `1.0`, `false` for nothing, keywords that an API
//! server drops, texts of validation rules and, unless an exception asks for it, documentation. Nor is a constraint that
//! goes as a whole (`enum`, `oneOf`), as nothing becomes invalid by it; `pattern`, `nullable`, `default` and what is
//! unhandled are reported in both directions, as clients may rely on what they read.

mod constraints;
mod finding;
mod objects;
mod place;
mod policy;
mod property;
mod rule;
mod schema;
#[cfg(test)]
mod tests;
mod versions;
mod whole;

use std::collections::BTreeMap;

use serde_json::Value;

pub use finding::Finding;
pub use objects::{Extent, Trial, Tried, versions_to_try};
pub use policy::{Enforcement, Exception, Policy};
pub use rule::UpgradeRule;

use finding::Findings;

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
/// - No object is looked at: that is what a [`Trial`] is for.
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
/// are tried ([`Trial`]). So only those schemas are compared whose objects cannot be read, since they are not served.
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
