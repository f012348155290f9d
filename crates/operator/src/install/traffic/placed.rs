//! What carries traffic to the webhooks of a plan, at the Services that were chosen.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_bundle::{
    Phase,
    render::{Conversion, WebhookCertificate},
};
use windlass_object::object;

use super::{calls::CalledPort, color::Color};
use crate::install::plan::Plan;

/// What carries traffic to the webhooks of a plan: it differs from the plan in the names of Services.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// The Services that webhooks are to call.
    pub services: Vec<Value>,
    /// The webhook configurations, without CA bundles.
    pub admission: Vec<Value>,
    /// The conversions.
    pub conversions: Vec<Conversion>,
}

// === impl Traffic ===

impl Traffic {
    /// That of `plan`, with the Service of each color for the Services in `colors`, which are named by their blue one.
    pub fn new(plan: &Plan, colors: &BTreeMap<&str, Color>) -> Self {
        let greens: BTreeMap<_, _> = plan
            .certificates
            .iter()
            .filter(|certificate| colors.get(certificate.service.as_str()) == Some(&Color::Green))
            .map(|certificate| (certificate.service.as_str(), certificate.green.as_str()))
            .collect();
        let renamed = |name: &str| greens.get(name).copied().map(str::to_owned);
        let services = plan
            .certificates
            .iter()
            .filter_map(|certificate| {
                let color = *colors.get(certificate.service.as_str())?;
                plan.service(&certificate.service, color)
            })
            .collect();
        let mut admission: Vec<_> = plan.phases.of(Phase::Admission).cloned().collect();
        let webhooks = admission
            .iter_mut()
            .filter_map(|configuration| configuration.get_mut("webhooks")?.as_array_mut())
            .flatten();
        for webhook in webhooks {
            let service = webhook.pointer_mut("/clientConfig/service");
            let name = service.and_then(|service| service.get_mut("name"));
            let green = name.as_deref().and_then(Value::as_str).and_then(renamed);
            if let (Some(name), Some(green)) = (name, green) {
                *name = green.into();
            }
        }
        let conversions = plan
            .conversions
            .iter()
            .cloned()
            .map(|mut conversion| {
                if let Some(green) = renamed(&conversion.service) {
                    conversion.service = green;
                }
                conversion
            })
            .collect();
        Self {
            services,
            admission,
            conversions,
        }
    }

    /// The Service that the webhooks of a Deployment are to call.
    pub fn service_of(&self, certificate: &WebhookCertificate) -> Option<&str> {
        let names = [certificate.service.as_str(), certificate.green.as_str()];
        self.services
            .iter()
            .filter_map(|service| object::text(service, "/metadata/name"))
            .find(|name| names.contains(name))
    }

    /// Every Service and port that webhooks are to call.
    pub fn calls(&self) -> BTreeSet<CalledPort> {
        let admission = self.admission.iter().flat_map(CalledPort::all_of);
        admission
            .chain(self.conversions.iter().map(CalledPort::of_conversion))
            .collect()
    }

    /// Whether there is one among `calls` that goes to a Service which webhooks are not to call.
    pub fn leaves(&self, calls: &BTreeSet<CalledPort>) -> bool {
        let desired = self.calls();
        calls.iter().any(|call| {
            !desired
                .iter()
                .any(|desired| (&desired.namespace, &desired.service) == (&call.namespace, &call.service))
        })
    }

    /// The conversion of a CustomResourceDefinition, if it is claimed.
    pub fn conversion(&self, crd: &str) -> Option<&Conversion> {
        self.conversions.iter().find(|conversion| conversion.crd == crd)
    }
}
