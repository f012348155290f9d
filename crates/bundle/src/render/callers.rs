//! ExtensionConfigs and APIServices that a bundle contains or declares.

use serde_json::Value;
use windlass_object::json;

use super::{
    error::RenderError,
    options::CertificateProvider,
    serving_deployments::{ServedCaller, ServingDeployment},
    trust,
};
use crate::{callers::Caller, parse::Bundle};

/// Renders the objects without CA bundles. Each calls the Service that Windlass generates for its Deployment:
/// that Service has the certificate and selects the pods of one revision only.
pub(super) fn objects(
    bundle: &Bundle,
    serving: &[ServingDeployment<'_>],
    namespace: &str,
    certificates: &CertificateProvider,
) -> Result<Vec<Value>, Vec<RenderError>> {
    let errors: Vec<_> = Caller::all(bundle)
        .filter_map(|caller| caller.backend(bundle).err())
        .map(RenderError::from)
        .collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    let calls = serving
        .iter()
        .flat_map(|serving| serving.callers.iter().map(move |called| (serving, called)));
    Ok(calls
        .map(|(serving, called)| object(called, &serving.service, namespace, certificates))
        .collect())
}

fn object(
    called: &ServedCaller<'_>,
    service: &str,
    namespace: &str,
    certificates: &CertificateProvider,
) -> Value {
    let mut object = called.caller.object.clone().into_owned();
    json::drop_live_fields(&mut object);
    json::set_namespace(&mut object, None);
    let path: Vec<_> = called.caller.client_config.split('/').skip(1).collect();
    let client = json::fields(&mut object, &path);
    if let CertificateProvider::Windlass { .. } = certificates {
        client.shift_remove("caBundle");
        // The API server rejects a CA bundle together with this field.
        client.shift_remove("insecureSkipTLSVerify");
    }
    let reference = client.entry("service").or_insert(Value::Null);
    let reference = json::fields(reference, &[]);
    reference.insert("namespace".into(), namespace.into());
    reference.insert("name".into(), service.into());
    reference.insert("port".into(), called.port.into());
    if let CertificateProvider::Windlass { .. } = certificates {
        trust::remove_other_injectors(&mut object);
        trust::inject_ca(&mut object, namespace, service);
    }
    object
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_object::object;

    use super::*;
    use crate::render::{InstallOptions, Rendered, render, sample};

    fn service(name: &str, target: &Value) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"selector": {"app": "widgets"}, "ports": [{"port": 443, "targetPort": target}]},
        })
    }

    fn api_service() -> Value {
        json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": "v1.example.com", "annotations": {"cert-manager.io/inject-ca-from": "a/b", "a": "b"}},
            "spec": {
                "group": "example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
                "insecureSkipTLSVerify": true, "service": {"namespace": "there", "name": "hooks"},
            },
        })
    }

    /// Renders the sample with these additional objects, with or without its webhooks.
    fn rendered(others: &[Value], webhooks: bool, options: &InstallOptions) -> Rendered {
        let mut bundle = sample::bundle();
        if !webhooks {
            bundle.csv.object["spec"]["webhookdefinitions"] = json!([]);
            bundle.crds.clear();
        }
        bundle.others = others.iter().cloned().map(sample::manifest).collect();
        render(&bundle, options).unwrap()
    }

    fn named<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
        let is = |object: &&Value| object::text(object, "/kind") == Some(kind);
        objects.iter().find(is).unwrap()
    }

    #[test]
    fn a_caller_makes_a_deployment_without_webhooks_serve() {
        let config = json!({"name": "hooks", "namespace": "there", "path": "/hooks"});
        let others = [
            sample::extension_config(&config).object,
            service("hooks", &json!(9443)),
        ];
        let rendered = rendered(&others, false, &sample::options("ns"));
        assert_eq!(sample::keys(&rendered.callers), ["ExtensionConfig hooks"]);
        let config = &rendered.callers[0];
        assert_eq!(
            config["spec"]["clientConfig"],
            json!({"service": {
                "name": "widgets-controller-service", "namespace": "ns", "path": "/hooks", "port": 443,
            }})
        );
        assert_eq!(
            config["metadata"]["annotations"],
            json!({"windlass.dev/inject-ca-from": "ns/widgets-controller-service"})
        );
        let services: Vec<_> = rendered
            .objects
            .iter()
            .filter(|object| object["kind"] == "Service")
            .map(|service| (&service["metadata"]["name"], &service["spec"]["ports"]))
            .collect();
        assert_eq!(
            services,
            [
                (&json!("hooks"), &json!([{"port": 443, "targetPort": 9443}])),
                (
                    &json!("widgets-controller-service"),
                    &json!([{"name": "443", "port": 443, "targetPort": 9443}])
                ),
            ]
        );
        assert_eq!(rendered.certificates.len(), 1);
        let pod_spec = &named(&rendered.objects, "Deployment")["spec"]["template"]["spec"];
        let mount = json!({"name": "webhook-cert", "mountPath": "/tmp/k8s-webhook-server/serving-certs"});
        assert_eq!(pod_spec["containers"][0]["volumeMounts"][0], mount);
        assert_eq!(
            pod_spec["containers"][0]["readinessProbe"],
            json!({"tcpSocket": {"port": 9443}})
        );
    }

    #[test]
    fn two_services_with_the_same_port_become_one_with_two_ports() {
        let mut hooks = service("hooks", &json!("hooks"));
        hooks["spec"]["ports"][0]["targetPort"] = json!(9444);
        let others = [api_service(), hooks];
        let rendered = rendered(&others, true, &sample::options("ns"));
        let service = rendered
            .objects
            .iter()
            .find(|object| object["metadata"]["name"] == "widgets-controller-service")
            .unwrap();
        assert_eq!(
            service["spec"]["ports"],
            json!([{"name": "443", "port": 443, "targetPort": 9443}, {"name": "9444", "port": 9444, "targetPort": 9444}])
        );
        let api_service = named(&rendered.callers, "APIService");
        assert_eq!(
            api_service["spec"],
            json!({
                "group": "example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
                "service": {"namespace": "ns", "name": "widgets-controller-service", "port": 9444},
            })
        );
        assert_eq!(
            api_service["metadata"]["annotations"],
            json!({"a": "b", "windlass.dev/inject-ca-from": "ns/widgets-controller-service"})
        );
    }

    #[test]
    fn a_service_with_a_generated_name_is_replaced_with_all_its_ports() {
        let name = "widgets-controller-service";
        let mut bundled = service(name, &json!(9443));
        bundled["spec"]["ports"] = json!([{"port": 443, "targetPort": 9443}, {"port": 8080}]);
        let config = sample::extension_config(&json!({"name": name})).object;
        let rendered = rendered(&[bundled, config], false, &sample::options("ns"));
        assert_eq!(
            named(&rendered.objects, "Service")["spec"]["ports"],
            json!([{"name": "443", "port": 443, "targetPort": 9443}, {"name": "8080", "port": 8080, "targetPort": 8080}])
        );
    }

    #[test]
    fn without_certificates_nothing_requests_injection() {
        let options = InstallOptions {
            certificates: CertificateProvider::None,
            ..sample::options("ns")
        };
        let rendered = rendered(&[api_service(), service("hooks", &json!(9443))], false, &options);
        let api_service = named(&rendered.callers, "APIService");
        assert_eq!(api_service["spec"]["insecureSkipTLSVerify"], true);
        assert_eq!(api_service["metadata"]["annotations"], api_service_annotations());
        assert_eq!(
            api_service["spec"]["service"],
            json!({"namespace": "ns", "name": "widgets-controller-service", "port": 443})
        );
    }

    fn api_service_annotations() -> Value {
        api_service()["metadata"]["annotations"].clone()
    }

    #[test]
    fn an_owned_api_service_is_rendered_as_in_olm_with_delegation_bindings() {
        let mut bundle = sample::bundle();
        bundle.csv.object["spec"]["apiservicedefinitions"]["owned"] = json!([
            {"group": "a.example.com", "version": "v1", "kind": "A", "name": "as", "deploymentName": "widgets.controller",
                "containerPort": 9443},
            {"group": "a.example.com", "version": "v1", "kind": "B", "name": "bs", "deploymentName": "widgets.controller",
                "containerPort": 9443},
        ]);
        let rendered = render(&bundle, &sample::options("ns")).unwrap();
        let services: Vec<_> = rendered
            .callers
            .iter()
            .filter(|caller| caller["kind"] == "APIService")
            .collect();
        let expected = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {
                "name": "v1.a.example.com", "annotations": {"windlass.dev/inject-ca-from": "ns/widgets-controller-service"},
            },
            "spec": {
                "group": "a.example.com", "version": "v1", "groupPriorityMinimum": 2000, "versionPriority": 15,
                "service": {"namespace": "ns", "name": "widgets-controller-service", "port": 9443},
            },
        });
        assert_eq!(services, [&expected]);
        let bindings: Vec<_> = rendered
            .objects
            .iter()
            .filter(|object| {
                object["roleRef"]["name"]
                    .as_str()
                    .is_some_and(|role| role.contains("auth"))
            })
            .cloned()
            .collect();
        assert_eq!(
            sample::keys(&bindings),
            [
                "ClusterRoleBinding ns-widgets-controller-service-system:auth-delegator",
                "RoleBinding kube-system/ns-widgets-controller-service-auth-reader",
            ]
        );
        for binding in &bindings {
            assert_eq!(
                binding["subjects"],
                json!([{"kind": "ServiceAccount", "name": "widgets", "namespace": "ns"}])
            );
        }
    }

    #[test]
    fn callers_without_a_server_in_the_bundle_are_refused() {
        let mut bundle = sample::bundle();
        bundle.others = vec![sample::extension_config(&json!({"name": "other"}))];
        let errors = render(&bundle, &sample::options("ns")).unwrap_err();
        assert!(
            errors[0]
                .to_string()
                .starts_with("ExtensionConfig 'hooks' calls Service 'other'"),
            "{errors:?}"
        );
    }
}
