//! Compares CRDs apart from their schemas.

use serde_json::Value;
use windlass_object::object;

use super::{
    UpgradeRule, constraints::KeywordChange, finding::Findings, property::unhandled, versions::versions,
};
use crate::{is_served, is_storage, stored_versions};

/// Fields other than versions that affect which objects are stored and their names.
const FIELDS: [(&str, &str); 4] = [
    ("spec.group", "/spec/group"),
    ("spec.names.kind", "/spec/names/kind"),
    ("spec.names.plural", "/spec/names/plural"),
    ("spec.preserveUnknownFields", "/spec/preserveUnknownFields"),
];

/// Compares two CRDs apart from their schemas.
pub(super) fn compare(old: &Value, new: &Value, findings: &mut Findings<'_>) {
    compare_scopes(old, new, findings);
    compare_stored_versions(old, new, findings);
    compare_served_versions(old, new, findings);
    for (what, pointer) in FIELDS {
        // Absent, null and false are equivalent.
        let value = |crd| {
            let value: Option<&Value> = Value::pointer(crd, pointer);
            value.filter(|value| !matches!(value, Value::Null | Value::Bool(false)))
        };
        if value(old) != value(new) {
            let message = unhandled([KeywordChange::new(what, value(old), value(new))]);
            findings.add(None, None, UpgradeRule::Unhandled, message);
        }
    }
}

fn compare_scopes(old: &Value, new: &Value, findings: &mut Findings<'_>) {
    let scope = |crd| object::text(crd, "/spec/scope").unwrap_or_default();
    let (old, new): (&str, &str) = (scope(old), scope(new));
    if old != new {
        findings.add(
            None,
            None,
            UpgradeRule::Scope,
            format!("scope changed : {old:?} -> {new:?}"),
        );
    }
}

fn compare_stored_versions(old: &Value, new: &Value, findings: &mut Findings<'_>) {
    let stays = versions(new);
    let removed: Vec<&str> = versions_in_store(old)
        .into_iter()
        .filter(|stored| !stays.contains_key(stored))
        .collect();
    if !removed.is_empty() {
        let message = format!("stored versions removed : [{}]", removed.join(", "));
        findings.add(None, None, UpgradeRule::StoredVersionRemoval, message);
    }
}

/// Returns `status.storedVersions`; for a file without a status, the storage version.
fn versions_in_store(crd: &Value) -> Vec<&str> {
    let stored = stored_versions(crd);
    if !stored.is_empty() {
        return stored;
    }
    versions(crd)
        .into_iter()
        .filter(|(_, version)| is_storage(version))
        .map(|(name, _)| name)
        .collect()
}

fn compare_served_versions(old: &Value, new: &Value, findings: &mut Findings<'_>) {
    let stays = versions(new);
    for (name, _) in versions(old)
        .into_iter()
        .filter(|(_, version)| is_served(version))
    {
        let message = match stays.get(name) {
            None => format!("served version removed : {name}"),
            Some(version) if !is_served(version) => format!("version no longer served : {name}"),
            Some(_) => continue,
        };
        findings.add(Some(name), None, UpgradeRule::ServedVersionRemoval, message);
    }
}
