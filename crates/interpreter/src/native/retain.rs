//! What of an observed object is kept in the desired one.

use serde_json::{Map, Value};
use windlass_object::object::{annotation, label, text};

use super::{
    Answering, FieldTypeError,
    field::{self, within},
};
use crate::{Answer, Question};

/// The label that leaves the replicas to the cluster where an object is.
const RETAIN_REPLICAS: &str = "resourcetemplate.karmada.io/retain-replicas";

/// What a ServiceAccount's own Secrets are of.
const ACCOUNT_TOKEN: &str = "kubernetes.io/service-account-token";

type Keeping = fn(&mut Value, &Value) -> Result<(), FieldTypeError>;

/// What keeps the fields of a kind.
pub(super) fn of(api_version: &str, kind: &str) -> Option<Answering> {
    Some(match (api_version, kind) {
        ("apps/v1", "Deployment" | "StatefulSet") => |question| answer(question, replicas),
        ("v1", "Pod") => |question| answer(question, pod),
        ("v1", "Service") => |question| answer(question, service),
        ("v1", "ServiceAccount") => |question| answer(question, service_account),
        ("v1", "PersistentVolumeClaim") => |question| answer(question, claim),
        ("v1", "PersistentVolume") => |question| answer(question, volume),
        ("batch/v1", "Job") => |question| answer(question, job),
        ("v1", "Secret") => |question| answer(question, secret),
        _ => return None,
    })
}

fn answer(question: Question<'_>, keep: Keeping) -> Result<Answer, FieldTypeError> {
    let mut kept = question.object().clone();
    if let Question::Retain { observed, .. } = question {
        keep(&mut kept, observed)?;
    }
    Ok(Answer::Object(kept))
}

fn replicas(kept: &mut Value, observed: &Value) -> Result<(), FieldTypeError> {
    let is_retained = |object: &Value| label(object, RETAIN_REPLICAS) == Some("true");
    if !is_retained(kept) && !is_retained(observed) {
        return Ok(());
    }
    let replicas = field::integer(observed, "/spec/replicas")?.ok_or_else(|| FieldTypeError {
        field: "spec.replicas of the observed object".to_owned(),
        expected: "set",
    })?;
    within(kept, &["spec"])?.insert("replicas".to_owned(), replicas.into());
    Ok(())
}

fn pod(kept: &mut Value, observed: &Value) -> Result<(), FieldTypeError> {
    for name in ["nodeName", "serviceAccountName", "volumes"] {
        keep(kept, observed, &["spec"], name)?;
    }
    for list in ["containers", "initContainers"] {
        let pointer = format!("/spec/{list}");
        let theirs = field::list(observed, &pointer)?.to_vec();
        let Some(own) = kept.pointer_mut(&pointer).and_then(Value::as_array_mut) else {
            continue;
        };
        for container in own {
            let same = theirs
                .iter()
                .find(|other| text(other, "/name") == text(container, "/name"));
            if let (Some(mounts), Some(fields)) = (
                same.and_then(|same| same.get("volumeMounts")),
                container.as_object_mut(),
            ) {
                fields.insert("volumeMounts".to_owned(), mounts.clone());
            }
        }
    }
    Ok(())
}

fn service(kept: &mut Value, observed: &Value) -> Result<(), FieldTypeError> {
    if field::integer(observed, "/spec/healthCheckNodePort")?.is_some_and(|port| port > 0) {
        keep(kept, observed, &["spec"], "healthCheckNodePort")?;
    }
    if field::text(observed, "/spec/clusterIP")?.is_some_and(|address| !address.is_empty()) {
        keep(kept, observed, &["spec"], "clusterIP")?;
    }
    Ok(())
}

/// Those of both, the desired ones first.
fn service_account(kept: &mut Value, observed: &Value) -> Result<(), FieldTypeError> {
    for list in ["secrets", "imagePullSecrets"] {
        let pointer = format!("/{list}");
        let mut united = field::list(kept, &pointer)?.to_vec();
        for reference in field::list(observed, &pointer)? {
            let is_known = united
                .iter()
                .any(|known| text(known, "/name") == text(reference, "/name"));
            if !is_known {
                united.push(reference.clone());
            }
        }
        if !united.is_empty() {
            within(kept, &[])?.insert(list.to_owned(), united.into());
        }
    }
    Ok(())
}

fn claim(kept: &mut Value, observed: &Value) -> Result<(), FieldTypeError> {
    match field::text(observed, "/spec/volumeName")? {
        Some(name) if !name.is_empty() => keep(kept, observed, &["spec"], "volumeName"),
        _ => Ok(()),
    }
}

fn volume(kept: &mut Value, observed: &Value) -> Result<(), FieldTypeError> {
    keep(kept, observed, &["spec"], "claimRef")
}

fn job(kept: &mut Value, observed: &Value) -> Result<(), FieldTypeError> {
    keep(kept, observed, &["spec", "selector"], "matchLabels")?;
    keep(kept, observed, &["spec", "template", "metadata"], "labels")
}

fn secret(kept: &mut Value, observed: &Value) -> Result<(), FieldTypeError> {
    match field::text(kept, "/type")? {
        Some(ACCOUNT_TOKEN) => keep(kept, observed, &[], "data"),
        _ => Ok(()),
    }
}

/// Takes a field as it is observed, where it is there.
fn keep(kept: &mut Value, observed: &Value, path: &[&str], name: &str) -> Result<(), FieldTypeError> {
    let mut place = Some(observed);
    for name in path {
        place = place.and_then(|place| place.get(name));
    }
    if let Some(value) = place
        .and_then(|place| place.get(name))
        .filter(|value| !value.is_null())
    {
        within(kept, path)?.insert(name.to_owned(), value.clone());
    }
    Ok(())
}

/// What is always kept of an observed object, before its kind is asked (`objectwatcher.go` of Karmada): what only the API server and
/// controllers of the cluster write, and labels and annotations that others have put on.
///
/// Those that `resourcetemplate.karmada.io/managed-labels` and `managed-annotations` of the observed object name are the desired
/// object's: where it has them no more, they go.
pub fn retain_metadata(desired: &mut Value, observed: &Value) {
    for name in ["resourceVersion", "finalizers", "ownerReferences"] {
        match observed.pointer(&format!("/metadata/{name}")) {
            Some(value) => desired["metadata"][name] = value.clone(),
            None => {
                let metadata = desired.get_mut("metadata").and_then(Value::as_object_mut);
                metadata.and_then(|metadata| metadata.shift_remove(name));
            }
        }
    }
    for (field, managed) in [
        ("labels", "resourcetemplate.karmada.io/managed-labels"),
        ("annotations", "resourcetemplate.karmada.io/managed-annotations"),
    ] {
        let managed = annotation(observed, managed).unwrap_or_default();
        let managed: Vec<_> = managed.split(',').collect();
        let marks = |object: &Value| object["metadata"][field].as_object().cloned().unwrap_or_default();
        let own = marks(desired);
        let mut all: Map<_, _> = marks(observed)
            .into_iter()
            .filter(|(name, _)| own.contains_key(name) || !managed.contains(&&**name))
            .collect();
        all.extend(own);
        if !all.is_empty() {
            desired["metadata"][field] = Value::Object(all);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kept(api_version: &str, kind: &str, desired: Value, observed: Value) -> Result<Value, String> {
        let question = Question::Retain {
            desired: &desired,
            observed: &observed,
        };
        match of(api_version, kind).unwrap()(question) {
            Ok(Answer::Object(object)) => Ok(object),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn each_kind_keeps_what_its_cluster_sets() {
        let labelled = |replicas: Value| json!({"metadata": {"labels": {RETAIN_REPLICAS: "true"}}, "spec": {"replicas": replicas}});
        for (api_version, kind, desired, observed, expected) in [
            (
                "apps/v1",
                "Deployment",
                json!({"spec": {"replicas": 1}}),
                json!({"spec": {"replicas": 3}}),
                json!({"spec": {"replicas": 1}}),
            ),
            (
                "apps/v1",
                "Deployment",
                labelled(json!(1)),
                json!({"spec": {"replicas": 3}}),
                labelled(json!(3)),
            ),
            (
                "apps/v1",
                "StatefulSet",
                labelled(json!(null)),
                json!({"spec": {"replicas": 3}}),
                labelled(json!(3)),
            ),
            (
                "apps/v1",
                "Deployment",
                json!({"spec": {"replicas": 1}}),
                labelled(json!(3)),
                json!({"spec": {"replicas": 3}}),
            ),
            (
                "v1",
                "Pod",
                json!({"spec": {"containers": [{"name": "a", "volumeMounts": [1]}, {"name": "b"}]}}),
                json!({"spec": {"nodeName": "n", "serviceAccountName": "s", "volumes": [{"name": "v"}], "containers": [{"name": "c"}, {"name": "b", "volumeMounts": [2]}]}}),
                json!({"spec": {"nodeName": "n", "serviceAccountName": "s", "volumes": [{"name": "v"}], "containers": [{"name": "a", "volumeMounts": [1]}, {"name": "b", "volumeMounts": [2]}]}}),
            ),
            (
                "v1",
                "Service",
                json!({"spec": {}}),
                json!({"spec": {"clusterIP": "1.2.3.4", "clusterIPs": ["1.2.3.4"], "healthCheckNodePort": 30000}}),
                json!({"spec": {"clusterIP": "1.2.3.4", "healthCheckNodePort": 30000}}),
            ),
            (
                "v1",
                "Service",
                json!({"spec": {}}),
                json!({"spec": {"clusterIP": "", "healthCheckNodePort": 0}}),
                json!({"spec": {}}),
            ),
            (
                "v1",
                "ServiceAccount",
                json!({"secrets": [{"name": "b"}]}),
                json!({"secrets": [{"name": "a"}, {"name": "b"}]}),
                json!({"secrets": [{"name": "b"}, {"name": "a"}]}),
            ),
            ("v1", "ServiceAccount", json!({}), json!({}), json!({})),
            (
                "v1",
                "PersistentVolumeClaim",
                json!({}),
                json!({"spec": {"volumeName": "v"}}),
                json!({"spec": {"volumeName": "v"}}),
            ),
            (
                "v1",
                "PersistentVolumeClaim",
                json!({}),
                json!({"spec": {"volumeName": ""}}),
                json!({}),
            ),
            (
                "v1",
                "PersistentVolume",
                json!({"spec": {}}),
                json!({"spec": {"claimRef": {"name": "c"}}}),
                json!({"spec": {"claimRef": {"name": "c"}}}),
            ),
            (
                "batch/v1",
                "Job",
                json!({"spec": {"template": {"metadata": {"labels": {"own": "x"}}}}}),
                json!({"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}}}}),
                json!({"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}}}}),
            ),
            (
                "v1",
                "Secret",
                json!({"type": ACCOUNT_TOKEN}),
                json!({"data": {"token": "t"}}),
                json!({"type": ACCOUNT_TOKEN, "data": {"token": "t"}}),
            ),
            (
                "v1",
                "Secret",
                json!({"type": "Opaque"}),
                json!({"data": {"token": "t"}}),
                json!({"type": "Opaque"}),
            ),
        ] {
            assert_eq!(
                kept(api_version, kind, desired.clone(), observed.clone()),
                Ok(expected),
                "{kind} {desired} {observed}"
            );
        }
    }

    #[test]
    fn replicas_that_are_not_there_and_fields_of_other_types_are_errors() {
        let labelled = json!({"metadata": {"labels": {RETAIN_REPLICAS: "true"}}});
        assert_eq!(
            kept("apps/v1", "Deployment", labelled, json!({})),
            Err("spec.replicas of the observed object: must be set".to_owned())
        );
        assert_eq!(
            kept(
                "v1",
                "PersistentVolume",
                json!({"spec": "x"}),
                json!({"spec": {"claimRef": {}}})
            ),
            Err("spec: must be an object".to_owned())
        );
    }

    #[test]
    fn marks_of_others_are_kept_and_own_ones_that_are_gone_are_not() {
        let observed = json!({"metadata": {
            "resourceVersion": "7", "finalizers": ["f"],
            "labels": {"theirs": "1", "own": "old", "gone": "x"},
            "annotations": {"resourcetemplate.karmada.io/managed-labels": "own,gone", "note": "n"},
        }});
        let mut desired = json!({"metadata": {"labels": {"own": "new"}, "ownerReferences": [1]}});
        retain_metadata(&mut desired, &observed);
        assert_eq!(
            desired["metadata"]["labels"],
            json!({"theirs": "1", "own": "new"})
        );
        assert_eq!(desired["metadata"]["annotations"]["note"], "n");
        assert_eq!(desired["metadata"]["resourceVersion"], "7");
        assert_eq!(desired["metadata"]["finalizers"], json!(["f"]));
        assert_eq!(desired["metadata"].get("ownerReferences"), None);
    }
}
