//! The Deployments that serve webhooks.

use serde_json::Value;
use windlass_object::object;

use super::names;
use crate::parse::{ClusterServiceVersion, DeploymentSpec, WebhookDefinition};

/// A Deployment of the bundle that serves webhooks.
#[derive(Clone, Debug)]
pub(super) struct ServingDeployment<'a> {
    /// The Deployment.
    pub(super) deployment: DeploymentSpec<'a>,
    /// What it serves, in the bundle's order.
    pub(super) webhooks: Vec<WebhookDefinition<'a>>,
    /// The Service that leads to it.
    pub(super) service: String,
    /// The Secret with the Service's certificate.
    pub(super) secret: String,
}

// === impl ServingDeployment ===

impl<'a> ServingDeployment<'a> {
    /// The Deployments that at least one webhook definition names, in the bundle's order.
    pub(super) fn all(csv: ClusterServiceVersion<'a>) -> Vec<Self> {
        csv.deployments()
            .filter_map(|deployment| {
                let webhooks: Vec<_> = csv
                    .webhooks()
                    .filter(|webhook| webhook.deployment_name() == deployment.name())
                    .collect();
                if webhooks.is_empty() {
                    return None;
                }
                let service = names::service(deployment.name());
                let secret = names::secret(&service);
                Some(Self {
                    deployment,
                    webhooks,
                    service,
                    secret,
                })
            })
            .collect()
    }

    /// The port of the pods that a webhook is served on: a number, or the name of a container's port.
    pub(super) fn target_port(webhook: WebhookDefinition<'_>) -> Value {
        webhook
            .target_port()
            .filter(|port| port.as_i64() != Some(0))
            .cloned()
            .unwrap_or_else(|| webhook.port().into())
    }

    /// The container with a port of that number or name, and the number.
    pub(super) fn container_with(pod_spec: &Value, target_port: &Value) -> Option<(usize, i64)> {
        let containers = object::items(pod_spec, "/containers").iter().enumerate();
        containers
            .flat_map(|(index, container)| {
                object::items(container, "/ports")
                    .iter()
                    .map(move |port| (index, port))
            })
            .find(|(_, port)| {
                ["containerPort", "name"]
                    .iter()
                    .any(|field| port.get(*field) == Some(target_port))
            })
            .and_then(|(index, port)| Some((index, port.get("containerPort")?.as_i64()?)))
    }
}
