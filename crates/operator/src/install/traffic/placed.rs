//! What carries traffic to the webhooks of a plan, at the Services that were chosen.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_bundle::{
    Phase,
    render::{Conversion, WebhookCertificate},
};
use windlass_object::object;

use super::{
    calls::{CalledPort, client_configs, is_of_api_servers},
    color::Color,
};
use crate::install::plan::Plan;

/// What carries traffic to the webhooks of a plan: it differs from the plan in the names of Services.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// The Services that webhooks are to call.
    pub services: Vec<Value>,
    /// The webhook configurations, ExtensionConfigs and APIServices, without CA bundles.
    pub callers: Vec<Value>,
    /// The conversions.
    pub conversions: Vec<Conversion>,
}

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
        let mut callers: Vec<_> = plan.phases.of(Phase::Callers).cloned().collect();
        for caller in &mut callers {
            for client in client_configs(caller) {
                let name = caller.pointer_mut(&format!("{client}/service/name"));
                let green = name.as_deref().and_then(Value::as_str).and_then(renamed);
                if let (Some(name), Some(green)) = (name, green) {
                    *name = green.into();
                }
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
            callers,
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
        let callers = self.callers.iter().flat_map(CalledPort::all_of);
        callers
            .chain(self.conversions.iter().map(CalledPort::of_conversion))
            .collect()
    }

    /// Whether API servers are to call a Service on that port.
    pub fn is_for_api_servers(&self, service: &str, port: i64) -> bool {
        let calls = |call: CalledPort| call.service == service && call.port == port;
        let is_theirs = |caller: &&Value| object::text(caller, "/kind").is_some_and(is_of_api_servers);
        let mut callers = self.callers.iter().filter(is_theirs);
        let mut conversions = self.conversions.iter();
        callers.any(|caller| CalledPort::all_of(caller).into_iter().any(calls))
            || conversions.any(|conversion| calls(CalledPort::of_conversion(conversion)))
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
