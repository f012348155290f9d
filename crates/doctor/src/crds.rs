//! CustomResourceDefinitions of Windlass and of other software.

use serde_json::Value;
use windlass_object::{ObjectKey, object};

use crate::{
    check::DoctorCheck,
    finding::{DoctorFinding, DoctorSeverity},
};

/// Compares a CustomResourceDefinition of Windlass with the one of this version. `severity` is that of a
/// difference, which is expected if the operator has another version.
pub fn own_crd(expected: &Value, live: Option<&Value>, severity: DoctorSeverity) -> Option<DoctorFinding> {
    let check = DoctorCheck::DefinitionStale;
    let key = ObjectKey::from_object(expected)?;
    let Some(live) = live else {
        let message = "not found: run windlass manifests | kubectl apply --server-side -f -";
        return Some(check.error(key, message));
    };
    let place = ["/spec/scope", "/spec/names/plural"]
        .into_iter()
        .find(|place| expected.pointer(place) != live.pointer(place));
    let stale = place
        .map(str::to_owned)
        .or_else(|| first_missing_part(expected, live));
    if let Some(place) = stale {
        let message = format!(
            "differs from this version of the command: {place} is missing or different, so the API server drops or rejects what Windlass \
             writes there; apply the manifests of the running version (helm upgrade, or windlass manifests | kubectl apply --server-side -f -)"
        );
        return Some(check.finding(severity, key, message));
    }
    // The reverse comparison finds fields that this version does not know.
    let place = first_missing_part(live, expected)?;
    let message = format!(
        "has {place}, which this version of the command does not know: another version of Windlass is installed; use the command of that version"
    );
    Some(check.warning(key, message))
}

/// Returns the first version or field of `wanted` that `live` lacks.
fn first_missing_part(wanted: &Value, live: &Value) -> Option<String> {
    object::items(wanted, "/spec/versions")
        .iter()
        .find_map(|version| {
            let name = object::text(version, "/name").unwrap_or_default();
            let mut others = object::items(live, "/spec/versions").iter();
            let Some(other) = others.find(|other| object::text(other, "/name") == Some(name)) else {
                return Some(format!("version {name}"));
            };
            let served = ["served", "storage"]
                .into_iter()
                .find(|field| version.get(field) != other.get(field))
                .map(|field| format!("{name}.{field}"));
            let schema = "/schema/openAPIV3Schema";
            served.or_else(|| missing_field(version.pointer(schema)?, other.pointer(schema), name))
        })
}

/// Returns the first field of `wanted` that `live` lacks or changes. Empty values are not stored, and numbers
/// may be written differently.
fn missing_field(wanted: &Value, live: Option<&Value>, place: &str) -> Option<String> {
    let said = || Some(place.to_owned());
    match (wanted, live) {
        // Descriptions do not matter.
        (Value::Object(wanted), Some(Value::Object(live))) => wanted
            .iter()
            .filter(|(name, value)| *name != "description" || !value.is_string())
            .find_map(|(name, value)| missing_field(value, live.get(name), &format!("{place}.{name}"))),
        (Value::Array(wanted), Some(Value::Array(live))) if wanted.len() == live.len() => wanted
            .iter()
            .zip(live)
            .enumerate()
            .find_map(|(index, (value, live))| {
                missing_field(value, Some(live), &format!("{place}[{index}]"))
            }),
        (Value::Number(wanted), Some(Value::Number(live))) if wanted.as_f64() == live.as_f64() => None,
        (wanted, Some(live)) if wanted == live => None,
        (Value::Null | Value::Bool(false), None) => None,
        (Value::Array(items), None) if items.is_empty() => None,
        (Value::Object(fields), None) if fields.is_empty() => None,
        _ => said(),
    }
}

/// Returns the problems of a CustomResourceDefinition, regardless of its owner.
pub fn crd_problems(live: &Value) -> Vec<DoctorFinding> {
    let Some(key) = ObjectKey::from_object(live) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let message = |condition: &Value| object::text(condition, "/message").unwrap_or_default().to_owned();
    let is = |condition: &Value, status| object::text(condition, "/status") == Some(status);
    if object::is_terminating(live) {
        let said = object::condition(live, "Terminating")
            .map(message)
            .unwrap_or_default();
        let said = format!("is being deleted with all its objects: {said}");
        findings.push(DoctorCheck::DefinitionNotEstablished.warning(&key, said));
    }
    for (condition, wrong, what) in [
        ("NamesAccepted", "False", "its names conflict with another one"),
        ("Established", "False", "is not served"),
        ("NonStructuralSchema", "True", "its schema is not structural"),
    ] {
        if let Some(condition) = object::condition(live, condition).filter(|found| is(found, wrong)) {
            let said = format!(
                "{what}: {}; apply the original from its author",
                message(condition)
            );
            findings.push(DoctorCheck::DefinitionNotEstablished.error(&key, said));
            break;
        }
    }
    let stored = object::items(live, "/status/storedVersions").iter();
    let unserved: Vec<_> = stored
        .filter_map(Value::as_str)
        .filter(|stored| {
            let mut versions = object::items(live, "/spec/versions").iter();
            !versions.any(|version| {
                object::text(version, "/name") == Some(stored) && version["served"] == Value::Bool(true)
            })
        })
        .collect();
    if !unserved.is_empty() {
        let said = format!(
            "objects may be stored in {}, which is not served: without a conversion they cannot be read; rewrite them before \
             that version is dropped (docs/upgrade.md)",
            unserved.join(", ")
        );
        findings.push(DoctorCheck::StoredVersionNotServed.warning(&key, said));
    }
    findings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn crd(schema: Value) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "a.windlass.dev"},
            "spec": {"scope": "Cluster", "names": {"plural": "a"}, "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}},
            ]},
        })
    }

    fn judged(expected: &Value, live: &Value) -> Option<(DoctorSeverity, String)> {
        let found = own_crd(
            &crd(expected.clone()),
            Some(&crd(live.clone())),
            DoctorSeverity::Error,
        );
        found.map(|found| (found.severity, found.message))
    }

    #[test]
    fn missing_fields_are_stale_and_extra_fields_are_newer() {
        let ours = json!({"type": "object", "properties": {
            "a": {"type": "integer", "minimum": 0.0, "description": "words", "required": [], "nullable": false},
            "b": {"type": "array", "items": {"enum": ["x", "y"]}},
        }});
        let mut stored = ours.clone();
        stored["properties"]["a"] = json!({"type": "integer", "minimum": 0, "description": "other words"});
        assert_eq!(judged(&ours, &stored), None, "as an API server stores it");
        let older = json!({"type": "object", "properties": {"a": stored["properties"]["a"]}});
        let (severity, message) = judged(&ours, &older).unwrap();
        assert_eq!(severity, DoctorSeverity::Error);
        assert!(message.contains("v1.properties.b is missing"), "{message}");
        let (severity, message) = judged(&older, &ours).unwrap();
        assert_eq!(severity, DoctorSeverity::Warning);
        assert!(message.contains("another version"), "{message}");
        let mut fewer = ours.clone();
        fewer["properties"]["b"]["items"]["enum"] = json!(["x"]);
        assert!(
            judged(&ours, &fewer)
                .unwrap()
                .1
                .contains("v1.properties.b.items.enum")
        );
    }

    #[test]
    fn missing_crds_and_versions_are_reported() {
        let expected = crd(json!({}));
        let gone = own_crd(&expected, None, DoctorSeverity::Warning).unwrap();
        assert_eq!(gone.severity, DoctorSeverity::Error);
        let mut renamed = expected.clone();
        renamed["spec"]["versions"][0]["name"] = json!("v0");
        let found = own_crd(&expected, Some(&renamed), DoctorSeverity::Warning).unwrap();
        assert!(found.message.contains("version v1 is missing"), "{found:?}");
        let mut unserved = expected.clone();
        unserved["spec"]["versions"][0]["served"] = json!(false);
        let found = own_crd(&expected, Some(&unserved), DoctorSeverity::Warning).unwrap();
        assert!(found.message.contains("v1.served"), "{found:?}");
    }

    #[test]
    fn unserved_and_unestablished_crds_are_reported() {
        let mut live = crd(json!({}));
        assert!(crd_problems(&live).is_empty());
        live["status"] = json!({"storedVersions": ["v1", "v1beta1"]});
        assert_eq!(crd_problems(&live)[0].reason, "StoredVersionNotServed");
        live["status"] = json!({"conditions": [
            {"type": "NamesAccepted", "status": "False", "message": "taken"},
            {"type": "Established", "status": "False", "message": "no"},
        ]});
        let found = crd_problems(&live);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].severity, DoctorSeverity::Error);
        live["status"] = json!({});
        live["metadata"]["deletionTimestamp"] = json!("2026-11-27T03:00:00Z");
        assert_eq!(crd_problems(&live)[0].severity, DoctorSeverity::Warning);
    }
}
