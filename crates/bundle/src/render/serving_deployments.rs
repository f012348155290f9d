//! The Deployments that serve webhooks, runtime hooks or aggregated APIs.

use serde_json::Value;

use super::names;
use crate::{
    callers::{Caller, port_number, selects_same_port},
    parse::{Bundle, DeploymentSpec, Manifest, WebhookDefinition},
};

/// A Deployment of the bundle that serves requests of callers.
#[derive(Clone, Debug)]
pub(super) struct ServingDeployment<'a> {
    pub(super) deployment: DeploymentSpec<'a>,
    /// The webhooks that it serves, in bundle order.
    pub(super) webhooks: Vec<WebhookDefinition<'a>>,
    /// ExtensionConfigs and APIServices that call the Deployment, in bundle order.
    pub(super) callers: Vec<ServedCaller<'a>>,
    /// The generated Service that selects its pods.
    pub(super) service: String,
    /// The bundled Service of that name, which the generated one replaces.
    pub(super) replaced: Option<&'a Manifest>,
    /// The Secret with the Service's certificate.
    pub(super) secret: String,
}

/// An object of the bundle that calls a Deployment.
#[derive(Clone, Debug)]
pub(super) struct ServedCaller<'a> {
    /// The object.
    pub(super) caller: Caller<'a>,
    /// The port of the Service that the object has to call.
    pub(super) port: i64,
    /// The port of the pods, as a number or by name.
    pub(super) target_port: Value,
}

impl<'a> ServingDeployment<'a> {
    /// Lists the Deployments that at least one webhook definition or other caller reaches, in bundle order.
    pub(super) fn all(bundle: &'a Bundle) -> Vec<Self> {
        let csv = bundle.csv();
        let called: Vec<_> = Caller::all(bundle)
            .filter_map(|caller| {
                let backend = caller.backend(bundle).ok()?;
                Some((caller, backend))
            })
            .collect();
        csv.deployments()
            .filter_map(|deployment| {
                let webhooks: Vec<_> = csv
                    .webhooks()
                    .filter(|webhook| webhook.deployment_name() == deployment.name())
                    .collect();
                let called: Vec<_> = called
                    .iter()
                    .filter(|(_, backend)| backend.deployment == deployment.name())
                    .collect();
                if webhooks.is_empty() && called.is_empty() {
                    return None;
                }
                let service = names::service(deployment.name());
                let secret = names::secret(&service);
                let replaced = called
                    .iter()
                    .filter_map(|(_, backend)| backend.service)
                    .find(|bundled| webhooks.is_empty() && bundled.name() == service);
                let mut serving = Self {
                    deployment,
                    webhooks,
                    callers: Vec::new(),
                    service,
                    replaced,
                    secret,
                };
                for (caller, backend) in called {
                    let port = serving.free_port(backend.port, &backend.target_port);
                    serving.callers.push(ServedCaller {
                        caller: caller.clone(),
                        port,
                        target_port: backend.target_port.clone(),
                    });
                }
                Some(serving)
            })
            .collect()
    }

    /// Pairs of Service port and pod port; a port with several callers is repeated.
    pub(super) fn ports(&self) -> impl Iterator<Item = (i64, Value)> {
        let webhooks = self.webhooks.iter();
        webhooks
            .map(|webhook| (webhook.port(), webhook.served_port()))
            .chain(
                self.callers
                    .iter()
                    .map(|called| (called.port, called.target_port.clone())),
            )
    }

    pub(super) fn spec(&self) -> &'a Value {
        self.deployment.spec().unwrap_or(&Value::Null)
    }

    /// Reports whether the Deployment serves an APIService, to which API servers proxy requests.
    pub(super) fn is_api_server(&self) -> bool {
        self.callers.iter().any(|called| called.caller.is_api_service())
    }

    /// Returns the Service port for a caller of `port` whose target is `target`: `port`, or a free one if
    /// `port` has another target. Two Services of a bundle may both have a port 443, and one Service replaces
    /// both.
    fn free_port(&self, port: i64, target: &Value) -> i64 {
        let leads_elsewhere = self
            .ports()
            .any(|(known, other)| known == port && !selects_same_port(self.spec(), &other, target));
        match port_number(self.spec(), target) {
            Some(number) if leads_elsewhere => number,
            _ => port,
        }
    }
}
