//! CustomResourceDefinitions, and the conversions that the ClusterServiceVersion declares for them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_object::{json, object};

use super::{
    error::RenderError, options::CertificateProvider, serving_deployments::ServingDeployment, trust,
};
use crate::parse::{Bundle, Manifest, WebhookDefinition, WebhookType};

/// Versions of ConversionReview that API servers send.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// The conversion of one CustomResourceDefinition by a webhook of the bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// Name of the CustomResourceDefinition, `plural.group`.
    pub crd: String,
    /// The namespace of the Service.
    pub namespace: String,
    /// Name of the Service.
    pub service: String,
    /// The port of the Service.
    pub port: i64,
    /// The path, with a leading slash.
    pub path: String,
    /// Versions of ConversionReview that both the webhook and API servers support, preferred first.
    pub review_versions: Vec<String>,
}

impl Conversion {
    /// Returns the `spec.conversion` for this webhook. `ca_bundle` is PEM in base64.
    pub fn stanza(&self, ca_bundle: Option<&str>) -> Value {
        let mut client = json!({
            "service": {
                "namespace": self.namespace,
                "name": self.service,
                "path": self.path,
                "port": self.port,
            }
        });
        if let Some(ca_bundle) = ca_bundle {
            client["caBundle"] = ca_bundle.into();
        }
        json!({
            "strategy": "Webhook",
            "webhook": {"clientConfig": client, "conversionReviewVersions": self.review_versions},
        })
    }

    /// Reports whether a live `spec.conversion` calls this webhook, whatever its CA bundle.
    pub fn matches(&self, live: &Value) -> bool {
        let mut live = live.clone();
        let config = live
            .pointer_mut("/webhook/clientConfig")
            .and_then(Value::as_object_mut);
        if let Some(config) = config {
            config.shift_remove("caBundle");
        }
        live == self.stanza(None)
    }

    /// Reads the conversion from a live `spec.conversion` of `crd`; `None` if it calls no Service.
    pub fn from_stanza(crd: &str, live: &Value) -> Option<Self> {
        let service = live.pointer("/webhook/clientConfig/service")?;
        let text = |field: &str| service.get(field).and_then(Value::as_str).map(str::to_owned);
        let review_versions = live
            .pointer("/webhook/conversionReviewVersions")
            .and_then(Value::as_array);
        Some(Self {
            crd: crd.to_owned(),
            namespace: text("namespace")?,
            service: text("name")?,
            port: service.get("port").and_then(Value::as_i64).unwrap_or(443),
            path: text("path").unwrap_or_else(|| "/".to_owned()),
            review_versions: review_versions
                .into_iter()
                .flatten()
                .filter_map(|version| version.as_str().map(str::to_owned))
                .collect(),
        })
    }

    /// The DNS name of the Service, which the certificate must contain.
    pub fn server_name(&self) -> String {
        format!("{}.{}.svc", self.service, self.namespace)
    }
}

/// Renders the bundle's CustomResourceDefinitions without conversion: the one in the manifest names a Service
/// of the author's cluster, and the declared one is armed separately.
pub(super) fn crds(
    bundle: &Bundle,
    conversions: &[Conversion],
    certificates: &CertificateProvider,
) -> Vec<Value> {
    bundle
        .crds
        .iter()
        .map(|manifest| {
            let mut crd = manifest.object.clone();
            json::drop_live_fields(&mut crd);
            json::set_namespace(&mut crd, None);
            if let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) {
                spec.shift_remove("conversion");
            }
            let conversion = conversions
                .iter()
                .find(|conversion| conversion.crd == manifest.name());
            if let (Some(conversion), CertificateProvider::Windlass { .. }) = (conversion, certificates) {
                trust::remove_other_injectors(&mut crd);
                trust::inject_ca(&mut crd, &conversion.namespace, &conversion.service);
            }
            crd
        })
        .collect()
}

/// The conversions in the manifests of the bundle's CustomResourceDefinitions, by CRD name.
pub(super) fn written_conversions(bundle: &Bundle) -> BTreeMap<String, Value> {
    bundle
        .crds
        .iter()
        .filter_map(|manifest| {
            let stanza = manifest.object.pointer("/spec/conversion")?;
            Some((manifest.name().to_owned(), stanza.clone()))
        })
        .filter(|(_, stanza)| !stanza.is_null())
        .collect()
}

/// The conversions that the ClusterServiceVersion declares, in the order of the CustomResourceDefinitions.
pub(super) fn conversions(
    bundle: &Bundle,
    serving: &[ServingDeployment<'_>],
    namespace: &str,
) -> Result<Vec<Conversion>, Vec<RenderError>> {
    let mut conversions = Vec::new();
    let mut errors = Vec::new();
    // With a single version API servers never convert, although the webhook keeps running.
    let converts = |manifest: &&Manifest| object::items(&manifest.object, "/spec/versions").len() > 1;
    for manifest in bundle.crds.iter().filter(converts) {
        let name = manifest.name();
        let mut declared = serving.iter().flat_map(|deployment| {
            let converts = |webhook: &&WebhookDefinition<'_>| {
                webhook.webhook_type() == Some(WebhookType::Conversion)
                    && webhook.conversion_crds().any(|crd| crd == name)
            };
            deployment
                .webhooks
                .iter()
                .filter(converts)
                .map(move |webhook| (deployment, webhook))
        });
        let Some((deployment, webhook)) = declared.next() else {
            continue;
        };
        if declared.next().is_some() {
            errors.push(RenderError::SeveralConversions { crd: name.to_owned() });
        }
        if manifest.object.pointer("/spec/preserveUnknownFields") == Some(&Value::Bool(true)) {
            errors.push(RenderError::PreservesUnknownFields { crd: name.to_owned() });
        }
        let versions = webhook.review_versions();
        let known: Vec<_> = versions
            .iter()
            .filter(|version| REVIEW_VERSIONS.contains(version))
            .map(|version| (*version).to_owned())
            .collect();
        if known.is_empty() {
            errors.push(RenderError::ReviewVersions {
                crd: name.to_owned(),
                versions: versions.iter().map(|version| (*version).to_owned()).collect(),
            });
        }
        conversions.push(Conversion {
            crd: name.to_owned(),
            namespace: namespace.to_owned(),
            service: deployment.service.clone(),
            port: webhook.port(),
            path: webhook
                .path()
                .filter(|path| !path.is_empty())
                .unwrap_or("/")
                .to_owned(),
            review_versions: known,
        });
    }
    if errors.is_empty() {
        Ok(conversions)
    } else {
        Err(errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::sample;

    fn converted(bundle: &Bundle) -> Result<Vec<Conversion>, Vec<String>> {
        conversions(bundle, &ServingDeployment::all(bundle), "ns")
            .map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_definition_of_one_version_is_not_converted() {
        let mut bundle = sample::bundle();
        assert_eq!(converted(&bundle).unwrap().len(), 1);
        let versions = bundle.crds[0].object["spec"]["versions"].as_array_mut().unwrap();
        versions.truncate(1);
        assert_eq!(converted(&bundle).unwrap(), []);
    }

    #[test]
    fn a_stanza_has_a_ca_bundle_only_if_one_is_given() {
        let conversion = &converted(&sample::bundle()).unwrap()[0];
        assert_eq!(
            conversion.stanza(None),
            json!({"strategy": "Webhook", "webhook": {
                "clientConfig": {"service": {
                    "namespace": "ns", "name": "widgets-controller-service", "path": "/convert", "port": 443
                }},
                "conversionReviewVersions": ["v1", "v1beta1"]
            }})
        );
        assert_eq!(
            conversion.stanza(Some("QQ=="))["webhook"]["clientConfig"]["caBundle"],
            "QQ=="
        );
    }

    #[test]
    fn only_the_conversion_of_the_manifest_is_removed() {
        let mut bundle = sample::bundle();
        let crd = &mut bundle.crds[0].object;
        crd["metadata"]["annotations"] = json!({"cert-manager.io/inject-ca-from": "there/cert", "controller-gen.kubebuilder.io/version": "v0.16.1"});
        crd["metadata"]["creationTimestamp"] = Value::Null;
        crd["status"] = json!({"conditions": null});
        crd["spec"]["conversion"] =
            json!({"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://there"}}});
        let original = crd.clone();

        let untouched = &crds(&bundle, &[], &CertificateProvider::default())[0];
        assert_eq!(
            untouched["metadata"]["annotations"],
            original["metadata"]["annotations"]
        );
        assert_eq!(untouched["spec"]["versions"], original["spec"]["versions"]);
        assert!(untouched["spec"].get("conversion").is_none());
        assert!(untouched.get("status").is_none());

        let conversions = converted(&bundle).unwrap();
        let armed_later = &crds(&bundle, &conversions, &CertificateProvider::default())[0];
        assert!(armed_later["spec"].get("conversion").is_none());
        assert_eq!(
            armed_later["metadata"]["annotations"],
            json!({
                "controller-gen.kubebuilder.io/version": "v0.16.1",
                "windlass.dev/inject-ca-from": "ns/widgets-controller-service"
            })
        );
        let none = &crds(&bundle, &conversions, &CertificateProvider::None)[0];
        assert_eq!(
            none["metadata"]["annotations"],
            original["metadata"]["annotations"]
        );
    }

    #[test]
    fn annotations_of_other_injectors_are_removed_from_converted_crds() {
        for annotation in [
            "cert-manager.io/inject-ca-from",
            "cert-manager.io/inject-ca-from-secret",
            "cert-manager.io/inject-apiserver-ca",
            "service.beta.openshift.io/inject-cabundle",
            "service.alpha.openshift.io/inject-cabundle",
            "runtime.cluster.x-k8s.io/inject-ca-from-secret",
        ] {
            let mut bundle = sample::bundle();
            bundle.crds[0].object["metadata"]["annotations"] = json!({annotation: "true"});
            let conversions = converted(&bundle).unwrap();
            let rendered = &crds(&bundle, &conversions, &CertificateProvider::default())[0];
            assert_eq!(
                rendered["metadata"]["annotations"],
                json!({"windlass.dev/inject-ca-from": "ns/widgets-controller-service"})
            );
        }
    }

    #[test]
    fn unsupported_review_versions_are_omitted() {
        let mut bundle = sample::bundle();
        bundle.csv.object["spec"]["webhookdefinitions"][0]["admissionReviewVersions"] =
            json!(["v1alpha1", "v1beta1"]);
        assert_eq!(converted(&bundle).unwrap()[0].review_versions, ["v1beta1"]);
        bundle.csv.object["spec"]["webhookdefinitions"][0]["admissionReviewVersions"] = json!(["v1alpha1"]);
        assert_eq!(
            converted(&bundle).unwrap_err(),
            [
                "the conversion webhook of custom resource definition 'widgets.example.com' takes ConversionReview versions [v1alpha1], but API servers send only v1 and v1beta1"
            ]
        );
    }

    #[test]
    fn invalid_conversions_are_refused() {
        let mut bundle = sample::bundle();
        bundle.crds[0].object["spec"]["preserveUnknownFields"] = json!(true);
        let webhooks = bundle.csv.object["spec"]["webhookdefinitions"]
            .as_array_mut()
            .unwrap();
        let twin = webhooks[0].clone();
        webhooks.push(twin);
        assert_eq!(
            converted(&bundle).unwrap_err(),
            [
                "custom resource definition 'widgets.example.com' is referenced by multiple conversion webhook definitions",
                "custom resource definition 'widgets.example.com' must have .spec.preserveUnknownFields set to false to let API Server call webhook to do the conversion",
            ]
        );
    }
}
