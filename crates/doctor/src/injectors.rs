//! Who else writes CA bundles that Windlass writes.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_object::{
    ObjectKey,
    ca_injectors::{CaInjector, CaInjectors},
    names, object,
};

use crate::{check::DoctorCheck, finding::DoctorFinding};

/// The annotations by which a target asks Windlass.
const REQUEST_ANNOTATIONS: [&str; 3] = [
    names::INJECT_CA_FROM,
    names::INJECT_CA_FROM_SECRET,
    names::INJECT_API_SERVER_CA,
];

/// What the names of our field managers begin with.
const OUR_MANAGERS: &str = "windlass-";

/// Whether a target asks Windlass for its CA bundle.
fn requests_injection(target: &Value) -> bool {
    REQUEST_ANNOTATIONS
        .iter()
        .any(|name| object::annotation(target, name).is_some_and(|value| !value.is_empty()))
}

/// Whether Windlass has installed an object, or brings it along.
fn is_installed_by_windlass(target: &Value) -> bool {
    object::text(target, "/spec/group") == Some(names::GROUP)
        || object::label(target, "app.kubernetes.io/name").is_some_and(|name| name.starts_with("windlass"))
}

/// A target that asks Windlass or is its own, and asks another injector, too; `at_work` are those that are seen to run.
pub fn two_injectors(target: &Value, at_work: &CaInjectors) -> Option<DoctorFinding> {
    if !requests_injection(target) && !is_installed_by_windlass(target) {
        return None;
    }
    let (injector, annotation) = CaInjector::ALL
        .into_iter()
        .find_map(|injector| Some((injector, injector.annotation_on(target)?)))?;
    let key = ObjectKey::from_object(target)?;
    let whose = match requests_injection(target) {
        true => "asks Windlass for its caBundle, and",
        false => "is of Windlass, and asks",
    };
    let check = DoctorCheck::TwoInjectors;
    Some(match at_work.contains(&injector) && requests_injection(target) {
        true => check.error(
            key,
            format!(
                "{whose} {injector}, which is at work and overwrites it: remove the annotation {annotation}"
            ),
        ),
        false => check.warning(
            key,
            format!("{whose} {injector}, too, which would overwrite it: remove the annotation {annotation}"),
        ),
    })
}

/// Who else owns the CA bundle of a target that asks Windlass, by its managedFields.
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
        "{owners} owns its caBundle, too, and puts an old one back when it applies: leave caBundle out of what it applies \
         (Argo CD: ignoreDifferences with RespectIgnoreDifferences)"
    );
    Some(DoctorCheck::CaBundleOwned.warning(ObjectKey::from_object(target)?, message))
}

/// Whether a set of fields has a CA bundle, wherever.
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
        assert!(found.message.starts_with("argocd-controller owns"), "{found:?}");
        assert_eq!(
            other_ca_bundle_owners(&target(&json!({}), "example.com", &managed)),
            None
        );
        let ours = json!([{"manager": names::CONVERSION, "fieldsV1": fields}]);
        assert_eq!(other_ca_bundle_owners(&target(&asks, "example.com", &ours)), None);
    }
}
