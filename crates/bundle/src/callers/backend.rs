//! The pods that receive the requests of a caller: the Deployment of the bundle and the port of its pods.

use serde_json::Value;
use thiserror::Error;
use windlass_object::object;

use super::caller::Caller;
use crate::{
    parse::{ApiServiceDefinition, Bundle, DeploymentSpec, Manifest, WebhookDefinition},
    render::names,
};

/// The pods that a caller sends requests to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Backend<'a> {
    /// The name of the Deployment.
    pub(crate) deployment: &'a str,
    /// The port of the Service.
    pub(crate) port: i64,
    /// The port of the pods: a number, or the name of a container's port.
    pub(crate) target_port: Value,
    /// The Service of the bundle in front of the pods.
    pub(crate) service: Option<&'a Manifest>,
}

/// Why a bundle does not serve the requests of one of its callers.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum UnservedCaller {
    /// The Deployment that the ClusterServiceVersion names as the server does not exist.
    #[error("{caller} must be served by a deployment of the bundle, not by '{deployment}'")]
    UnknownDeployment { caller: String, deployment: String },
    /// The caller names no Service.
    #[error("{caller} calls no Service: let it call one that selects the pods of a Deployment of the bundle")]
    NoService { caller: String },
    /// The bundle does not contain the Service.
    #[error(
        "{caller} calls Service '{service}', which the bundle does not contain: add a Service that selects the pods of a \
         Deployment of the bundle"
    )]
    UnknownService { caller: String, service: String },
    /// The Service selects the pods of no Deployment, or of several.
    #[error(
        "{caller} calls Service '{service}', which must select the pods of exactly one Deployment of the bundle, not of {count}"
    )]
    NotOneDeployment {
        caller: String,
        service: String,
        /// The number of Deployments whose pods the Service selects.
        count: usize,
    },
    /// The Service has no such port, or the pods do not have its target port.
    #[error(
        "{caller} calls port {port} of Service '{service}', which is not a port of deployment '{deployment}'"
    )]
    UnknownPort {
        caller: String,
        service: String,
        port: i64,
        deployment: String,
    },
}

impl<'a> Backend<'a> {
    /// Finds the pods that `caller` reaches, through a Service of the bundle or through one that an install
    /// creates.
    pub(super) fn resolve(caller: &Caller<'a>, bundle: &'a Bundle) -> Result<Self, UnservedCaller> {
        let description = || caller.description();
        if let Some(definition) = caller.definition {
            return Self::from_api_service(definition, bundle).ok_or_else(|| {
                UnservedCaller::UnknownDeployment {
                    caller: description(),
                    deployment: definition.deployment_name().to_owned(),
                }
            });
        }
        let (name, port) = caller.service().ok_or_else(|| UnservedCaller::NoService {
            caller: description(),
        })?;
        let bundled = bundle
            .others
            .iter()
            .find(|manifest| manifest.kind() == "Service" && manifest.name() == name);
        let deployment = match bundled {
            Some(service) => {
                selected_deployment(service, bundle).map_err(|count| UnservedCaller::NotOneDeployment {
                    caller: description(),
                    service: name.to_owned(),
                    count,
                })?
            }
            None => bundle
                .csv()
                .deployments()
                .find(|deployment| names::service(deployment.name()) == name)
                .ok_or_else(|| UnservedCaller::UnknownService {
                    caller: description(),
                    service: name.to_owned(),
                })?,
        };
        let target_port = match bundled {
            Some(service) => target_port(service, port),
            None => declared_port(bundle, deployment, port),
        };
        let target_port = target_port
            .filter(|target| target.is_i64() || has_port(deployment, target))
            .ok_or_else(|| UnservedCaller::UnknownPort {
                caller: description(),
                service: name.to_owned(),
                port,
                deployment: deployment.name().to_owned(),
            })?;
        Ok(Self {
            deployment: deployment.name(),
            port,
            target_port,
            service: bundled,
        })
    }

    /// The backend that a ClusterServiceVersion declares: Service and pods have the same port.
    fn from_api_service(definition: ApiServiceDefinition<'a>, bundle: &'a Bundle) -> Option<Self> {
        let name = definition.deployment_name();
        let deployment = bundle
            .csv()
            .deployments()
            .find(|deployment| deployment.name() == name)?;
        Some(Self {
            deployment: deployment.name(),
            port: definition.port(),
            target_port: definition.port().into(),
            service: None,
        })
    }
}

/// Returns the only Deployment whose pods the Service selects, or the number of such Deployments.
fn selected_deployment<'a>(service: &Manifest, bundle: &'a Bundle) -> Result<DeploymentSpec<'a>, usize> {
    let selector = service
        .object
        .pointer("/spec/selector")
        .and_then(Value::as_object);
    let selector = selector.filter(|selector| !selector.is_empty()).ok_or(0_usize)?;
    let is_selected = |deployment: &DeploymentSpec<'_>| {
        let spec = deployment.spec().unwrap_or(&Value::Null);
        let labels = spec.pointer("/template/metadata/labels");
        selector
            .iter()
            .all(|(name, value)| labels.and_then(|labels| labels.get(name)) == Some(value))
    };
    let found: Vec<_> = bundle.csv().deployments().filter(is_selected).collect();
    match found.as_slice() {
        [one] => Ok(*one),
        several => Err(several.len()),
    }
}

/// Returns the target port of a port of a Service in the bundle.
fn target_port(service: &Manifest, port: i64) -> Option<Value> {
    let ports = object::items(&service.object, "/spec/ports");
    let of = |known: &&Value| known.get("port").and_then(Value::as_i64) == Some(port);
    let target = ports.iter().find(of)?.get("targetPort");
    // The API server's default.
    Some(
        target
            .filter(|target| !target.is_null())
            .cloned()
            .unwrap_or_else(|| port.into()),
    )
}

/// Returns the target port of a port of the Service that an install creates: the one in a webhook definition,
/// else the container port with the same number.
fn declared_port(bundle: &Bundle, deployment: DeploymentSpec<'_>, port: i64) -> Option<Value> {
    let declared = bundle
        .csv()
        .webhooks()
        .find(|webhook| webhook.deployment_name() == deployment.name() && webhook.port() == port)
        .map(WebhookDefinition::served_port);
    declared.or_else(|| has_port(deployment, &port.into()).then(|| port.into()))
}

fn has_port(deployment: DeploymentSpec<'_>, port: &Value) -> bool {
    let spec = deployment.spec().unwrap_or(&Value::Null);
    // Sidecars are initContainers.
    ["/template/spec/containers", "/template/spec/initContainers"]
        .into_iter()
        .flat_map(|containers| object::items(spec, containers))
        .flat_map(|container| object::items(container, "/ports"))
        .any(|known| known.get("containerPort") == Some(port) || known.get("name") == Some(port))
}

/// Returns the index and port number of the container that has a port with this number or name.
pub(crate) fn container_with(pod_spec: &Value, target_port: &Value) -> Option<(usize, i64)> {
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

/// Reports whether two target ports of a Deployment with this `spec` are the same port; one may be a number,
/// the other its name.
pub(crate) fn selects_same_port(spec: &Value, one: &Value, other: &Value) -> bool {
    let number = |port| port_number(spec, port);
    one == other || number(one).is_some_and(|first| number(other) == Some(first))
}

pub(crate) fn port_number(spec: &Value, port: &Value) -> Option<i64> {
    let named = || container_with(spec.pointer("/template/spec")?, port).map(|(_, number)| number);
    port.as_i64().or_else(named)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::render::sample;

    /// Returns the backend of an ExtensionConfig that calls `service`. The sample gets a Service with these
    /// ports, and its pods get a port named `hooks`.
    fn backend(service: &Value, selector: &Value, ports: &Value) -> Result<(String, i64, Value), String> {
        let mut bundle = sample::bundle();
        bundle.csv.object["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"]["containers"]
            [0]["ports"] = json!([{"name": "hooks", "containerPort": 9444}, {"name": "webhook-server", "containerPort": 9443}]);
        bundle.others = vec![
            sample::manifest(json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": "hooks"},
                "spec": {"selector": selector, "ports": ports},
            })),
            sample::extension_config(service),
        ];
        let caller = Caller::all(&bundle).next().unwrap();
        let backend = caller.backend(&bundle).map_err(|error| error.to_string())?;
        Ok((backend.deployment.to_owned(), backend.port, backend.target_port))
    }

    #[test]
    fn a_service_reaches_the_deployment_whose_pods_it_selects() {
        let ports = json!([
            {"port": 443, "targetPort": "hooks"}, {"port": 8443, "targetPort": 9444}, {"port": 9444},
        ]);
        let widgets = "widgets.controller".to_owned();
        for (service, port, target) in [
            (json!({"name": "hooks"}), 443, json!("hooks")),
            (json!({"name": "hooks", "port": 8443}), 8443, json!(9444)),
            (json!({"name": "hooks", "port": 9444}), 9444, json!(9444)),
            // Services that an install creates for webhooks.
            (json!({"name": "widgets-controller-service"}), 443, json!(9443)),
            (
                json!({"name": "widgets-controller-service", "port": 9444}),
                9444,
                json!(9444),
            ),
        ] {
            let found = backend(&service, &json!({"app": "widgets"}), &ports);
            assert_eq!(found, Ok((widgets.clone(), port, target)), "{service}");
        }
    }

    #[test]
    fn callers_of_other_servers_are_refused_with_advice() {
        let (selector, ports) = (
            json!({"app": "widgets"}),
            json!([{"port": 443, "targetPort": "none"}]),
        );
        for (service, selector, expected) in [
            (Value::Null, &selector, "calls no Service"),
            (
                json!({"name": "other"}),
                &selector,
                "which the bundle does not contain",
            ),
            (
                json!({"name": "hooks"}),
                &json!({"app": "gears"}),
                "exactly one Deployment of the bundle, not of 0",
            ),
            (json!({"name": "hooks"}), &json!({}), "not of 0"),
            (
                json!({"name": "hooks", "port": 1}),
                &selector,
                "calls port 1 of Service 'hooks'",
            ),
            (
                json!({"name": "hooks"}),
                &selector,
                "is not a port of deployment 'widgets.controller'",
            ),
            (
                json!({"name": "widgets-controller-service", "port": 1}),
                &selector,
                "port 1",
            ),
        ] {
            let message = backend(&service, selector, &ports).unwrap_err();
            assert!(
                message.starts_with("ExtensionConfig 'hooks' calls ") && message.contains(expected),
                "{message}"
            );
        }
    }
}
