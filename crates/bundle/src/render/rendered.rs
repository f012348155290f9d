//! What an install of a bundle applies.

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

/// A rendered bundle: kept apart is what an install does at different moments.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// The namespace of the operator.
    pub namespace: String,
    /// Everything but `callers`; CustomResourceDefinitions are without conversion.
    pub objects: Vec<Value>,
    /// Webhook configurations, ExtensionConfigs and APIServices, without CA bundles, to be armed once they are proven.
    pub callers: Vec<Value>,
    /// Conversions, to be armed once they are proven.
    pub conversions: Vec<Conversion>,
    /// Where the operator arms its conversions itself: the `spec.conversion` that each CustomResourceDefinition is born
    /// with, by name, of those that have one in the bundle.
    pub self_managed: Option<BTreeMap<String, Value>>,
    /// Serving certificates that pods wait for; none without certificates.
    pub certificates: Vec<WebhookCertificate>,
    /// By which the operator says whether it can be upgraded, and what lets it: for clusters that serve the kind. Not for
    /// those without certificates, where nobody asks.
    pub operator_condition: Vec<Value>,
    /// What of the bundle is overridden, and how to keep it.
    pub notices: Vec<String>,
}

/// Renders a bundle that [check](crate::check) has found nothing wrong with. The same input gives the same
/// output, in the same order.
///
/// # Errors
///
/// Everything that keeps the bundle from being installed as `options` say.
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
            operator_condition::introduce(bundle.csv().name(), namespace, &mut deployments)
        }
        CertificateProvider::None => Vec::new(),
    };
    let notices = serving
        .iter()
        .filter_map(|serving| rollout::overridden(serving, &deployments))
        .collect();
    objects.extend(deployments);
    let mut callers = webhooks::configurations(&serving, namespace, &targets, &options.certificates);
    callers.extend(brought_callers);

    if !options.blocking_webhooks {
        errors.extend(webhooks::blocking(bundle, &targets, namespace));
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

// === impl Rendered ===

impl Rendered {
    /// Everything at once, for a cluster in which Windlass runs or that has no certificates: with conversion in its
    /// CustomResourceDefinitions and with what calls it, both without CA bundles.
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
