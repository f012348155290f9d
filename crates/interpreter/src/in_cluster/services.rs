//! Resolves Services through the API server, for callers without cluster DNS, for example a control plane
//! outside of the cluster.

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Service, ServiceSpec};
use kube::{Api, Client};
use webhook_transport::client::{Resolve, SystemResolver};

/// Resolves Services by getting them from the API server for each new connection, which needs permission to
/// get Services.
///
/// A Service with a cluster IP resolves to it, at a port that the Service has; one of type `ExternalName` to
/// its target. Other hosts, and Services that do not exist, are resolved by the system. The certificate must
/// always have the name of the Service.
#[derive(Clone)]
pub struct ClusterServices {
    client: Client,
}

/// The target of a Service.
#[derive(Debug, PartialEq, Eq)]
enum Destination {
    Address(IpAddr),
    /// A host name to resolve.
    Name(String),
}

impl ClusterServices {
    /// Creates a resolver for the Services of a cluster.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    async fn find(&self, host: &str, port: u16) -> io::Result<Destination> {
        let Some((name, namespace)) = service_of(host) else {
            return Ok(Destination::Name(host.to_owned()));
        };
        let services: Api<Service> = Api::namespaced(self.client.clone(), namespace);
        let found = services.get_opt(name).await;
        let found = found
            .map_err(|error| io::Error::other(format!("cannot get Service {namespace}/{name}: {error}")))?;
        match found {
            None => Ok(Destination::Name(host.to_owned())),
            Some(service) => destination(&service.spec.unwrap_or_default(), port)
                .map_err(|problem| io::Error::other(format!("Service {namespace}/{name}: {problem}"))),
        }
    }
}

impl Resolve for ClusterServices {
    fn resolve(&self, host: String, port: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        let services = self.clone();
        Box::pin(async move {
            match services.find(&host, port).await? {
                Destination::Address(address) => Ok(vec![SocketAddr::new(address, port)]),
                Destination::Name(name) => SystemResolver.resolve(name, port).await,
            }
        })
    }
}

/// Returns the name and namespace of the Service of a host name.
fn service_of(host: &str) -> Option<(&str, &str)> {
    host.strip_suffix(".svc")?
        .split_once('.')
        .filter(|(_, namespace)| !namespace.contains('.'))
}

/// Returns the target of a Service for a port.
fn destination(spec: &ServiceSpec, port: u16) -> Result<Destination, String> {
    if spec.type_.as_deref() == Some("ExternalName") {
        let name = spec.external_name.clone().filter(|name| !name.is_empty());
        return name
            .map(Destination::Name)
            .ok_or_else(|| "has no externalName".to_owned());
    }
    let address = spec.cluster_ip.as_deref().unwrap_or_default();
    let address = address
        .parse()
        .map_err(|_| format!("has no cluster IP, but {address:?}"))?;
    let mut ports = spec.ports.iter().flatten();
    match ports.any(|known| known.port == i32::from(port)) {
        true => Ok(Destination::Address(address)),
        false => Err(format!("has no port {port}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn services_resolve_as_in_karmada() {
        let ports = json!([{"port": 443}, {"port": 8443}]);
        let address = |text: &str| Ok(Destination::Address(text.parse().unwrap()));
        for (spec, port, expected) in [
            (
                json!({"clusterIP": "10.0.0.1", "ports": ports}),
                8443,
                address("10.0.0.1"),
            ),
            (
                json!({"clusterIP": "fd00::1", "ports": ports}),
                443,
                address("fd00::1"),
            ),
            (
                json!({"type": "LoadBalancer", "clusterIP": "10.0.0.1", "ports": ports}),
                443,
                address("10.0.0.1"),
            ),
            (
                json!({"clusterIP": "10.0.0.1", "ports": ports}),
                80,
                Err("has no port 80"),
            ),
            (json!({"clusterIP": "10.0.0.1"}), 80, Err("has no port 80")),
            (
                json!({"clusterIP": "None", "ports": ports}),
                443,
                Err("has no cluster IP, but \"None\""),
            ),
            (json!({}), 443, Err("has no cluster IP, but \"\"")),
            (
                json!({"type": "ExternalName", "externalName": "a.example.com"}),
                80,
                Ok(Destination::Name("a.example.com".into())),
            ),
            (json!({"type": "ExternalName"}), 80, Err("has no externalName")),
        ] {
            let spec: ServiceSpec = serde_json::from_value(spec).unwrap();
            assert_eq!(
                destination(&spec, port),
                expected.map_err(ToOwned::to_owned),
                "{spec:?}"
            );
        }
    }

    #[test]
    fn only_service_names_are_services() {
        assert_eq!(service_of("a.n.svc"), Some(("a", "n")));
        for host in [
            "a.svc",
            "a.example.com",
            "a.n.svc.cluster.local",
            "a.b.n.svc",
            "10.0.0.1",
        ] {
            assert_eq!(service_of(host), None, "{host}");
        }
    }
}
