//! What an object needs beside it.

use serde_json::Value;
use windlass_object::object::{items, text};

use super::{Answering, FieldTypeError};
use crate::{Answer, Question, answer::DependentObjectReference, pod};

/// What tells the dependencies of a kind.
pub(super) fn of(api_version: &str, kind: &str) -> Option<Answering> {
    Some(match (api_version, kind) {
        ("apps/v1", "Deployment" | "ReplicaSet" | "DaemonSet") | ("batch/v1", "Job") => {
            |question| of_template(question, "/spec/template")
        }
        ("apps/v1", "StatefulSet") => stateful_set,
        ("batch/v1", "CronJob") => |question| of_template(question, "/spec/jobTemplate/spec/template"),
        ("v1", "Pod") => |question| of_template(question, ""),
        ("networking.k8s.io/v1", "Ingress") => ingress,
        ("multicluster.x-k8s.io/v1alpha1", "ServiceImport") => service_import,
        _ => return None,
    })
}

fn of_template(question: Question<'_>, pointer: &str) -> Result<Answer, FieldTypeError> {
    Ok(Answer::Dependency(of_pods(question.object(), pointer)))
}

fn of_pods(object: &Value, pointer: &str) -> Vec<DependentObjectReference> {
    let template = object.pointer(pointer).unwrap_or(&Value::Null);
    pod::dependencies(template, text(object, "/metadata/namespace"))
}

/// Its own PersistentVolumeClaims come by themselves.
fn stateful_set(question: Question<'_>) -> Result<Answer, FieldTypeError> {
    let object = question.object();
    let own: Vec<_> = items(object, "/spec/volumeClaimTemplates")
        .iter()
        .filter_map(|template| text(template, "/metadata/name"))
        .collect();
    let mut references = of_pods(object, "/spec/template");
    references.retain(|reference| {
        let is_own = reference.name.as_deref().is_some_and(|name| own.contains(&name));
        reference.kind != "PersistentVolumeClaim" || !is_own
    });
    Ok(Answer::Dependency(references))
}

fn ingress(question: Question<'_>) -> Result<Answer, FieldTypeError> {
    let object = question.object();
    let names = items(object, "/spec/tls")
        .iter()
        .filter_map(|tls| text(tls, "/secretName"));
    let names = names.filter(|name| !name.is_empty());
    let references = names.map(|name| named(object, "v1", "Secret", name));
    Ok(Answer::Dependency(references.collect()))
}

fn service_import(question: Question<'_>) -> Result<Answer, FieldTypeError> {
    let object = question.object();
    let derived = format!("derived-{}", text(object, "/metadata/name").unwrap_or_default());
    let slices = DependentObjectReference {
        name: None,
        label_selector: Some(serde_json::json!({"matchLabels": {"kubernetes.io/service-name": derived}})),
        ..named(object, "discovery.k8s.io/v1", "EndpointSlice", "")
    };
    Ok(Answer::Dependency(vec![
        named(object, "v1", "Service", &derived),
        slices,
    ]))
}

fn named(object: &Value, api_version: &str, kind: &str, name: &str) -> DependentObjectReference {
    DependentObjectReference {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: text(object, "/metadata/namespace").map(str::to_owned),
        name: Some(name.to_owned()),
        label_selector: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(api_version: &str, kind: &str, spec: Value) -> Vec<String> {
        let object = json!({"metadata": {"namespace": "n", "name": "o"}, "spec": spec});
        let Ok(Answer::Dependency(found)) =
            of(api_version, kind).unwrap()(Question::Dependency { object: &object })
        else {
            panic!("no dependencies")
        };
        let shown = found.into_iter().map(|reference| {
            assert_eq!(reference.namespace.as_deref(), Some("n"));
            assert_eq!(reference.check(), Ok(()));
            let name = reference
                .name
                .or_else(|| reference.label_selector.map(|selector| selector.to_string()));
            format!(
                "{} {} {}",
                reference.api_version,
                reference.kind,
                name.unwrap_or_default()
            )
        });
        shown.collect()
    }

    #[test]
    fn each_kind_needs_what_its_pods_need_or_what_it_names() {
        let template = json!({"spec": {"serviceAccountName": "a", "volumes": [{"persistentVolumeClaim": {"claimName": "c"}}, {"persistentVolumeClaim": {"claimName": "d"}}]}});
        let all = [
            "v1 ServiceAccount a",
            "v1 PersistentVolumeClaim c",
            "v1 PersistentVolumeClaim d",
        ];
        for (api_version, kind) in [
            ("apps/v1", "Deployment"),
            ("apps/v1", "ReplicaSet"),
            ("apps/v1", "DaemonSet"),
            ("batch/v1", "Job"),
        ] {
            assert_eq!(names(api_version, kind, json!({ "template": template })), all);
        }
        assert_eq!(
            names(
                "batch/v1",
                "CronJob",
                json!({"jobTemplate": {"spec": {"template": template}}})
            ),
            all
        );
        assert_eq!(names("v1", "Pod", template["spec"].clone()), all);
        let claims = json!([{"metadata": {"name": "c"}}]);
        assert_eq!(
            names(
                "apps/v1",
                "StatefulSet",
                json!({"template": template, "volumeClaimTemplates": claims})
            ),
            ["v1 ServiceAccount a", "v1 PersistentVolumeClaim d"]
        );
        assert_eq!(
            names(
                "networking.k8s.io/v1",
                "Ingress",
                json!({"tls": [{"secretName": "s"}, {"secretName": ""}, {}]})
            ),
            ["v1 Secret s"]
        );
        assert_eq!(
            names("multicluster.x-k8s.io/v1alpha1", "ServiceImport", json!({})),
            [
                "v1 Service derived-o",
                r#"discovery.k8s.io/v1 EndpointSlice {"matchLabels":{"kubernetes.io/service-name":"derived-o"}}"#
            ]
        );
    }
}
