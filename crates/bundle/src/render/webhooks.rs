//! Webhook configurations, from the webhook definitions of a ClusterServiceVersion.

use serde_json::{Map, Value, json};
use windlass_object::object;

use super::{
    error::RenderError, install_modes::TargetNamespaces, names, options::CertificateProvider,
    serving_deployments::ServingDeployment, trust,
};
use crate::{
    parse::{Bundle, WebhookDefinition, WebhookType},
    requests,
};

/// Fields that webhook definitions and webhooks share.
const COMMON: [&str; 7] = [
    "rules",
    "failurePolicy",
    "matchPolicy",
    "objectSelector",
    "sideEffects",
    "timeoutSeconds",
    "admissionReviewVersions",
];

/// Renders one configuration per definition, validating ones first, without CA bundles.
pub(super) fn configurations(
    serving: &[ServingDeployment<'_>],
    namespace: &str,
    targets: &TargetNamespaces,
    certificates: &CertificateProvider,
) -> Vec<Value> {
    let kinds = [
        (WebhookType::Validating, "ValidatingWebhookConfiguration"),
        (WebhookType::Mutating, "MutatingWebhookConfiguration"),
    ];
    let mut configurations = Vec::new();
    for (webhook_type, kind) in kinds {
        for deployment in serving {
            let webhooks = deployment.webhooks.iter();
            for definition in webhooks.filter(|webhook| webhook.webhook_type() == Some(webhook_type)) {
                // The configuration is cluster-scoped: OLM sets a namespace here, which API servers drop.
                let mut configuration = json!({
                    "apiVersion": "admissionregistration.k8s.io/v1",
                    "kind": kind,
                    "metadata": {"name": names::webhook(definition.generate_name())},
                    "webhooks": [webhook(*definition, &deployment.service, namespace, targets)],
                });
                if let CertificateProvider::Windlass { .. } = certificates {
                    trust::inject_ca(&mut configuration, namespace, &deployment.service);
                }
                configurations.push(configuration);
            }
        }
    }
    configurations
}

/// Returns an error for each rule that blocks a request that the bundle itself needs.
pub(super) fn blocking_webhook_errors(
    bundle: &Bundle,
    targets: &TargetNamespaces,
    namespace: &str,
) -> Vec<RenderError> {
    let watched = targets.watched(namespace);
    let mut errors = Vec::new();
    let admission = bundle.csv().webhooks().filter(|webhook| {
        matches!(
            webhook.webhook_type(),
            Some(WebhookType::Validating | WebhookType::Mutating)
        )
    });
    for webhook in admission {
        for rule in object::items(webhook.0, "/rules") {
            errors.extend(requests::blocked(bundle, webhook, rule, watched).map(|request| {
                RenderError::BlockingWebhook {
                    webhook: webhook.generate_name().to_owned(),
                    request: request.to_string(),
                }
            }));
        }
    }
    errors
}

fn webhook(
    definition: WebhookDefinition<'_>,
    service: &str,
    namespace: &str,
    targets: &TargetNamespaces,
) -> Value {
    let WebhookDefinition(written) = definition;
    let mut fields = Map::new();
    fields.insert("name".into(), names::webhook(definition.generate_name()).into());
    let mut reference = json!({"namespace": namespace, "name": service, "port": definition.port()});
    if let Some(path) = definition.path() {
        reference["path"] = path.into();
    }
    fields.insert("clientConfig".into(), json!({"service": reference}));
    let mutating = definition.webhook_type() == Some(WebhookType::Mutating);
    for name in COMMON
        .iter()
        .copied()
        .chain(mutating.then_some("reinvocationPolicy"))
    {
        if let Some(value) = written.get(name).filter(|value| !value.is_null()) {
            fields.insert(name.into(), value.clone());
        }
    }
    if let TargetNamespaces::These(names) = targets {
        let expression = json!({"key": "kubernetes.io/metadata.name", "operator": "In", "values": names});
        fields.insert(
            "namespaceSelector".into(),
            json!({"matchExpressions": [expression]}),
        );
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::sample;

    fn rendered(targets: &TargetNamespaces, certificates: &CertificateProvider) -> Vec<Value> {
        let bundle = sample::bundle();
        configurations(&ServingDeployment::all(&bundle), "ns", targets, certificates)
    }

    #[test]
    fn each_definition_yields_a_configuration_validating_ones_first() {
        let all = rendered(&TargetNamespaces::All, &CertificateProvider::default());
        assert_eq!(
            all,
            [
                json!({
                    "apiVersion": "admissionregistration.k8s.io/v1",
                    "kind": "ValidatingWebhookConfiguration",
                    "metadata": {
                        "name": "vwidget.example.com",
                        "annotations": {"windlass.dev/inject-ca-from": "ns/widgets-controller-service"}
                    },
                    "webhooks": [{
                        "name": "vwidget.example.com",
                        "clientConfig": {"service": {
                            "namespace": "ns", "name": "widgets-controller-service", "port": 443, "path": "/validate"
                        }},
                        "rules": [{"operations": ["*"], "apiGroups": ["example.com"], "apiVersions": ["*"], "resources": ["widgets"]}],
                        "failurePolicy": "Fail",
                        "sideEffects": "None",
                        "admissionReviewVersions": ["v1"],
                    }],
                }),
                json!({
                    "apiVersion": "admissionregistration.k8s.io/v1",
                    "kind": "MutatingWebhookConfiguration",
                    "metadata": {
                        "name": "mwidget.example.com",
                        "annotations": {"windlass.dev/inject-ca-from": "ns/widgets-controller-service"}
                    },
                    "webhooks": [{
                        "name": "mwidget.example.com",
                        "clientConfig": {"service": {"namespace": "ns", "name": "widgets-controller-service", "port": 443}},
                        "sideEffects": "None",
                        "admissionReviewVersions": ["v1"],
                        "reinvocationPolicy": "IfNeeded",
                    }],
                }),
            ]
        );
    }

    #[test]
    fn webhooks_match_only_watched_namespaces() {
        let targets = TargetNamespaces::These(vec!["b".into(), "a".into()]);
        let configurations = rendered(&targets, &CertificateProvider::None);
        assert_eq!(
            configurations[0]["webhooks"][0]["namespaceSelector"],
            json!({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["b", "a"]}]})
        );
        assert!(configurations[0]["metadata"].get("annotations").is_none());
    }
}
