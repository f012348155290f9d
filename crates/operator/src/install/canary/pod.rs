//! The canary's pod, from the template of its Deployment.

use serde_json::{Map, Value, json};
use windlass_object::{names, object};

use super::template::revision;

/// The most characters of a Deployment's name that are part of the canary's, which is a host name, too.
const LONGEST_NAME: usize = 38;

/// The canary of a [stamped](super::template::stamp) Deployment: owned by its BundleDeployment, with no label of the template.
/// `None` where the Deployment has no template.
///
/// It is restarted as the Deployment's pods are, so that its status shows a crash loop, and says with which words its
/// containers ended. What another pod of the same kind could not share is left out: ports of the node, and readiness
/// gates that others open for pods behind Services.
pub fn pod(deployment: &Value, bundle_deployment: &str, uid: &str) -> Option<Value> {
    let template = deployment.pointer("/spec/template")?;
    let revision = revision(deployment)?;
    let mut spec = template.get("spec")?.as_object()?.clone();
    spec.shift_remove("readinessGates");
    spec.insert("restartPolicy".into(), "Always".into());
    for list in ["initContainers", "containers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            prepare(container);
        }
    }
    let name = object::text(deployment, "/metadata/name")?;
    let mut annotations = template
        .pointer("/metadata/annotations")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    annotations.insert(names::CANARY.to_owned(), name.into());
    Some(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("{}-canary-{revision}", cut(name)),
            "namespace": object::text(deployment, "/metadata/namespace")?,
            "labels": {names::BUNDLE_DEPLOYMENT: bundle_deployment, names::CANARY: revision},
            "annotations": annotations,
            "ownerReferences": [{
                "apiVersion": names::API_VERSION, "kind": "BundleDeployment", "name": bundle_deployment, "uid": uid,
                "controller": true, "blockOwnerDeletion": false,
            }],
        },
        "spec": spec,
    }))
}

/// Whether a Service selects the pods of a Deployment.
pub fn leads_to(service: &Value, deployment: &Value) -> bool {
    let labels = deployment.pointer("/spec/template/metadata/labels");
    let selector = service.pointer("/spec/selector").and_then(Value::as_object);
    selector.is_some_and(|selector| {
        !selector.is_empty()
            && selector
                .iter()
                .all(|(name, value)| labels.and_then(|labels| labels.get(name)) == Some(value))
    })
}

/// The port of a Deployment's pods behind port number `port` of a Service.
pub fn target_port(service: &Value, deployment: &Value, port: i64) -> Option<u16> {
    let entry = object::items(service, "/spec/ports")
        .iter()
        .find(|entry| entry.get("port").and_then(Value::as_i64) == Some(port))?;
    let number = match entry.get("targetPort") {
        Some(Value::String(name)) => object::items(deployment, "/spec/template/spec/containers")
            .iter()
            .flat_map(|container| object::items(container, "/ports"))
            .find(|port| object::text(port, "/name") == Some(name))?
            .get("containerPort")?
            .as_i64()?,
        Some(target) => target.as_i64().filter(|target| *target != 0).unwrap_or(port),
        None => port,
    };
    u16::try_from(number).ok()
}

fn prepare(container: &mut Map<String, Value>) {
    let ports = container.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        port.shift_remove("hostPort");
    }
    container
        .entry("terminationMessagePolicy")
        .or_insert_with(|| "FallbackToLogsOnError".into());
}

/// As much of a name as leaves room for `-canary-` and a revision.
fn cut(name: &str) -> &str {
    let end = name
        .char_indices()
        .map(|(index, character)| index + character.len_utf8())
        .take_while(|end| *end <= LONGEST_NAME)
        .last()
        .unwrap_or(0);
    name[..end].trim_end_matches(|character: char| !character.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::install::canary::stamp;

    fn deployment() -> Value {
        let mut deployment = json!({
            "metadata": {"name": "manager", "namespace": "n"},
            "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": {
                "metadata": {"labels": {"app": "a", "tier": "b"}, "annotations": {"olm.targetNamespaces": ""}},
                "spec": {
                    "serviceAccountName": "s", "readinessGates": [{"conditionType": "x/y"}],
                    "volumes": [{"name": "cert", "secret": {"secretName": "cert"}}],
                    "containers": [
                        {"name": "c", "image": "i", "env": [{"name": "A", "value": "b"}],
                            "volumeMounts": [{"name": "cert", "mountPath": "/cert"}],
                            "ports": [{"name": "webhook", "containerPort": 9443, "hostPort": 9443}]},
                        {"name": "d", "image": "j", "terminationMessagePolicy": "File"},
                    ],
                },
            }},
        });
        stamp(&mut deployment);
        deployment
    }

    #[test]
    fn a_canary_is_the_templates_pod_that_nothing_selects() {
        let deployment = deployment();
        let canary = pod(&deployment, "bundle", "uid").unwrap();
        let revision = revision(&deployment).unwrap();
        assert_eq!(canary["metadata"]["name"], format!("manager-canary-{revision}"));
        assert_eq!(
            canary["metadata"]["labels"],
            json!({"windlass.dev/bundle-deployment": "bundle", "windlass.dev/canary": revision})
        );
        assert_eq!(canary["metadata"]["annotations"]["olm.targetNamespaces"], "");
        assert_eq!(canary["metadata"]["ownerReferences"][0]["uid"], "uid");
        let template = &deployment["spec"]["template"]["spec"];
        for kept in ["serviceAccountName", "volumes"] {
            assert_eq!(canary["spec"][kept], template[kept]);
        }
        let container = &canary["spec"]["containers"][0];
        for kept in ["env", "volumeMounts", "image"] {
            assert_eq!(container[kept], template["containers"][0][kept]);
        }
        assert_eq!(
            container["ports"],
            json!([{"name": "webhook", "containerPort": 9443}])
        );
        assert_eq!(container["terminationMessagePolicy"], "FallbackToLogsOnError");
        assert_eq!(
            canary["spec"]["containers"][1]["terminationMessagePolicy"],
            "File"
        );
        assert_eq!(canary["spec"].get("readinessGates"), None);
        assert_eq!(canary["spec"]["restartPolicy"], "Always");
        assert_eq!(pod(&deployment, "bundle", "uid"), Some(canary));
    }

    #[test]
    fn a_service_leads_to_what_it_selects_at_its_target_port() {
        let deployment = deployment();
        let service = |selector: Value, target: Value| json!({"spec": {"selector": selector, "ports": [{"port": 1, "targetPort": 2}, {"port": 443, "targetPort": target}]}});
        for (selector, expected) in [
            (json!({"app": "a"}), true),
            (json!({"app": "b"}), false),
            (json!({"other": "a"}), false),
            (json!({}), false),
            (Value::Null, false),
        ] {
            assert_eq!(
                leads_to(&service(selector.clone(), json!(1)), &deployment),
                expected,
                "{selector}"
            );
        }
        for (target, expected) in [
            (json!(9443), Some(9443)),
            (json!("webhook"), Some(9443)),
            (json!("other"), None),
            (Value::Null, Some(443)),
            (json!(70_000), None),
        ] {
            let service = service(json!({}), target.clone());
            assert_eq!(target_port(&service, &deployment, 443), expected, "{target}");
        }
        assert_eq!(
            target_port(&service(json!({}), json!(1)), &deployment, 8443),
            None
        );
    }

    proptest! {
        #[test]
        fn names_are_host_names(name in "[a-z0-9]([-a-z0-9.]{0,240}[a-z0-9])?") {
            let mut deployment = deployment();
            deployment["metadata"]["name"] = name.into();
            let canary = pod(&deployment, "bundle", "uid").unwrap();
            let name = canary["metadata"]["name"].as_str().unwrap();
            prop_assert!(name.len() <= 63, "{}", name);
            let base = name.split_once("-canary-").unwrap().0;
            prop_assert!(base.ends_with(|c: char| c.is_ascii_alphanumeric()), "{}", name);
        }
    }
}
