//! The objects that an install of a bundle applies.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_object::{ObjectKey, json, object};

use super::options::{CertificateProvider, ConversionMode, InstallOptions};
use super::{
    callers,
    certificates::WebhookCertificate,
    crds::{self, Conversion},
    deployments,
    error::RenderError,
    install_modes::TargetNamespaces,
    operator_condition, plain_objects, rbac, rollout, services,
    serving_deployments::ServingDeployment,
    webhooks,
};
use crate::parse::Bundle;

/// A rendered bundle, split by the time at which an install applies each part.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// The namespace of the operator.
    pub namespace: String,
    /// All objects except `callers`; CustomResourceDefinitions have no conversion.
    pub objects: Vec<Value>,
    /// Webhook configurations, ExtensionConfigs and APIServices, without CA bundles, to be armed after proof.
    pub callers: Vec<Value>,
    /// Conversions, to be armed after proof.
    pub conversions: Vec<Conversion>,
    /// The `spec.conversion` of CustomResourceDefinitions that have one in the bundle, by name, if the
    /// operator manages its conversions itself.
    pub self_managed: Option<BTreeMap<String, Value>>,
    /// Serving certificates that pods wait for; empty without a certificate provider.
    pub certificates: Vec<WebhookCertificate>,
    /// The OperatorCondition and its RBAC objects, for clusters that serve the kind. Empty without a
    /// certificate provider, since nothing reads the condition then.
    pub operator_condition: Vec<Value>,
    /// The overridden settings of the bundle, and how to keep them.
    pub notices: Vec<String>,
}

/// Renders a bundle that passed its [check](crate::check). The same input yields the same output, in the same
/// order.
///
/// # Errors
///
/// Everything that prevents an install with these `options`.
pub fn render(bundle: &Bundle, options: &InstallOptions) -> Result<Rendered, Vec<RenderError>> {
    let namespace = options.namespace.as_str();
    let mut errors = Vec::new();
    let targets = TargetNamespaces::new(bundle.csv(), namespace, &options.watch_namespaces)
        .map_err(|error| errors.push(error))
        .unwrap_or(TargetNamespaces::All);
    let serving = ServingDeployment::all(bundle);
    let mut collect = |found: Vec<RenderError>| errors.extend(found);
    let (conversions, self_managed) = match options.conversion {
        ConversionMode::Managed => (
            crds::conversions(bundle, &serving, namespace)
                .map_err(&mut collect)
                .unwrap_or_default(),
            None,
        ),
        ConversionMode::External => (Vec::new(), Some(crds::written_conversions(bundle))),
    };
    let others = plain_objects::objects(bundle, namespace, &serving)
        .map_err(&mut collect)
        .unwrap_or_default();
    let brought_callers = callers::objects(bundle, &serving, namespace, &options.certificates)
        .map_err(&mut collect)
        .unwrap_or_default();
    let services: Vec<_> = serving
        .iter()
        .filter_map(|serving| services::service(serving, namespace).map_err(&mut collect).ok())
        .collect();
    let certificates: Vec<_> = match options.certificates {
        CertificateProvider::Windlass { .. } => serving.iter().map(WebhookCertificate::new).collect(),
        CertificateProvider::None => Vec::new(),
    };

    let mut objects = rbac::service_accounts(bundle, namespace);
    objects.extend(rbac::roles(bundle, namespace, &targets));
    objects.extend(rbac::delegation(&serving, namespace));
    objects.extend(crds::crds(bundle, &conversions, &options.certificates));
    objects.extend(others);
    objects.extend(services);
    objects.extend(
        certificates
            .iter()
            .map(|certificate| certificate.object(namespace, options.certificates.durations())),
    );
    let mut deployments = deployments::deployments(bundle, &serving, &targets, options);
    let operator_condition = match options.certificates {
        CertificateProvider::Windlass { .. } => {
            operator_condition::render(bundle.csv().name(), namespace, &mut deployments)
        }
        CertificateProvider::None => Vec::new(),
    };
    let notices = serving
        .iter()
        .filter_map(|serving| rollout::override_message(serving, &deployments))
        .collect();
    objects.extend(deployments);
    let mut callers = webhooks::configurations(&serving, namespace, &targets, &options.certificates);
    callers.extend(brought_callers);

    if !options.blocking_webhooks {
        errors.extend(webhooks::blocking_webhook_errors(bundle, &targets, namespace));
    }
    let greens: Vec<_> = certificates
        .iter()
        .map(|certificate| certificate.green_service(namespace))
        .collect();
    errors.extend(duplicates(
        [&objects, &callers, &greens, &operator_condition]
            .into_iter()
            .flatten(),
    ));
    if !errors.is_empty() {
        return Err(errors);
    }
    Ok(Rendered {
        namespace: namespace.to_owned(),
        objects,
        callers,
        conversions,
        self_managed,
        certificates,
        operator_condition,
        notices,
    })
}

fn is_crd(object: &Value, name: &str) -> bool {
    object::text(object, "/kind") == Some("CustomResourceDefinition")
        && object::text(object, "/metadata/name") == Some(name)
}

pub(super) fn duplicates<'a>(objects: impl Iterator<Item = &'a Value>) -> Vec<RenderError> {
    let mut seen = BTreeSet::new();
    objects
        .filter_map(ObjectKey::from_object)
        .filter(|key| !seen.insert(key.clone()))
        .map(|object| RenderError::Duplicate { object })
        .collect()
}

impl Rendered {
    /// Returns everything at once, for a cluster in which Windlass runs or that needs no certificates:
    /// CustomResourceDefinitions with conversion, and callers, both without CA bundles.
    pub fn manifests(&self) -> Vec<Value> {
        let mut manifests = self.objects.clone();
        for conversion in &self.conversions {
            let crd = manifests
                .iter_mut()
                .find(|object| is_crd(object, &conversion.crd));
            if let Some(crd) = crd {
                json::fields(crd, &["spec"]).insert("conversion".into(), conversion.stanza(None));
            }
        }
        for crd in &mut manifests {
            let written = self
                .self_managed
                .iter()
                .flatten()
                .find(|(name, _)| is_crd(crd, name));
            if let Some((_, stanza)) = written {
                json::fields(crd, &["spec"]).insert("conversion".into(), stanza.clone());
            }
        }
        manifests.extend(self.callers.iter().cloned());
        manifests
    }
}
