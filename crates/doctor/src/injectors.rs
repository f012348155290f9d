//! Other controllers that write CA bundles that Windlass writes.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_object::{
    ObjectKey,
    ca_injectors::{CaInjector, CaInjectors},
    names, object,
};

use crate::{check::DoctorCheck, finding::DoctorFinding};

/// The annotations by which a target requests injection by Windlass.
const REQUEST_ANNOTATIONS: [&str; 3] = [
    names::INJECT_CA_FROM,
    names::INJECT_CA_FROM_SECRET,
    names::INJECT_API_SERVER_CA,
];

/// Prefix of the field managers of Windlass.
const OUR_MANAGERS: &str = "windlass-";

/// Reports whether a target requests its CA bundle from Windlass.
fn requests_injection(target: &Value) -> bool {
    REQUEST_ANNOTATIONS
        .iter()
        .any(|name| object::annotation(target, name).is_some_and(|value| !value.is_empty()))
}

/// Reports whether an object belongs to the installation of Windlass.
fn is_installed_by_windlass(target: &Value) -> bool {
    object::text(target, "/spec/group") == Some(names::GROUP)
        || object::label(target, "app.kubernetes.io/name").is_some_and(|name| name.starts_with("windlass"))
}

/// Finds a target that requests injection by Windlass, or belongs to Windlass, and also requests injection by
/// another injector. `at_work` are the injectors that run.
pub fn two_injectors(target: &Value, at_work: &CaInjectors) -> Option<DoctorFinding> {
    if !requests_injection(target) && !is_installed_by_windlass(target) {
        return None;
    }
    let (injector, annotation) = CaInjector::ALL
        .into_iter()
        .find_map(|injector| Some((injector, injector.annotation_on(target)?)))?;
    let key = ObjectKey::from_object(target)?;
    let whose = match requests_injection(target) {
        true => "requests its caBundle from Windlass and also from",
        false => "belongs to Windlass, but requests its caBundle from",
    };
    let check = DoctorCheck::TwoInjectors;
    Some(match at_work.contains(&injector) && requests_injection(target) {
        true => check.error(
            key,
            format!(
                "{whose} {injector}, which is running and overwrites it: remove the annotation {annotation}"
            ),
        ),
        false => check.warning(
            key,
            format!("{whose} {injector}, which would overwrite it: remove the annotation {annotation}"),
        ),
    })
}

/// Finds other owners of the CA bundle of a target that requests injection by Windlass, by its managedFields.
pub fn other_ca_bundle_owners(target: &Value) -> Option<DoctorFinding> {
    if !requests_injection(target) {
        return None;
    }
    let owners: BTreeSet<_> = object::items(target, "/metadata/managedFields")
        .iter()
        .filter(|entry| entry.get("fieldsV1").is_some_and(has_ca_bundle))
        .filter_map(|entry| object::text(entry, "/manager"))
        .filter(|manager| !manager.starts_with(OUR_MANAGERS))
        .collect();
    if owners.is_empty() {
        return None;
    }
    let owners = owners.into_iter().collect::<Vec<_>>().join(", ");
    let message = format!(
        "{owners} also owns its caBundle and restores an old one with each apply: exclude caBundle from what it applies \
         (Argo CD: ignoreDifferences with RespectIgnoreDifferences)"
    );
    Some(DoctorCheck::CaBundleOwned.warning(ObjectKey::from_object(target)?, message))
}

/// Reports whether a field set contains a CA bundle at any depth.
fn has_ca_bundle(fields: &Value) -> bool {
    let Some(fields) = fields.as_object() else {
        return false;
    };
    fields.contains_key("f:caBundle") || fields.values().any(has_ca_bundle)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::finding::DoctorSeverity::{Error, Warning};

    fn target(annotations: &Value, group: &str, managed: &Value) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "a", "annotations": annotations, "managedFields": managed},
            "spec": {"group": group},
        })
    }

    #[test]
    fn only_targets_of_windlass_can_have_two_injectors() {
        let theirs = "cert-manager.io/inject-ca-from";
        let work = CaInjectors::from([CaInjector::CertManager]);
        for (annotations, group, at_work, expected) in [
            (json!({theirs: "a/b"}), "example.com", true, None),
            (json!({theirs: "a/b"}), "windlass.dev", false, Some(Warning)),
            (json!({theirs: "a/b"}), "windlass.dev", true, Some(Warning)),
            (
                json!({theirs: "a/b", names::INJECT_CA_FROM: "a/c"}),
                "example.com",
                true,
                Some(Error),
            ),
            (
                json!({theirs: "", names::INJECT_CA_FROM: "a/c"}),
                "example.com",
                true,
                None,
            ),
            (json!({names::INJECT_CA_FROM: "a/c"}), "example.com", true, None),
        ] {
            let none = CaInjectors::new();
            let found = two_injectors(
                &target(&annotations, group, &json!([])),
                if at_work { &work } else { &none },
            );
            assert_eq!(found.map(|found| found.severity), expected, "{annotations}");
        }
    }

    #[test]
    fn other_owners_of_the_ca_bundle_are_named() {
        let fields =
            json!({"f:spec": {"f:conversion": {"f:webhook": {"f:clientConfig": {"f:caBundle": {}}}}}});
        let managed = json!([
            {"manager": "argocd-controller", "operation": "Apply", "fieldsV1": fields},
            {"manager": names::INJECT, "operation": "Update", "fieldsV1": fields},
            {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:metadata": {}}},
        ]);
        let asks = json!({names::INJECT_CA_FROM: "a/b"});
        let found = other_ca_bundle_owners(&target(&asks, "example.com", &managed)).unwrap();
        assert!(
            found.message.starts_with("argocd-controller also owns"),
            "{found:?}"
        );
        assert_eq!(
            other_ca_bundle_owners(&target(&json!({}), "example.com", &managed)),
            None
        );
        let ours = json!([{"manager": names::CONVERSION, "fieldsV1": fields}]);
        assert_eq!(other_ca_bundle_owners(&target(&asks, "example.com", &ours)), None);
    }
}
