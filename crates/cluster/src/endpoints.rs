//! Endpoints of Services.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};

use serde_json::Value;
use windlass_object::object;

use crate::index::Index;
pub use crate::relation::SERVICE_NAME;

/// An address that a Service sends traffic to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The address and port.
    pub address: SocketAddr,
    /// The pod at this address, if any.
    pub pod: Option<Pod>,
}

/// A pod, in the namespace of the Service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pod {
    /// Name of the pod.
    pub name: String,
    /// `metadata.uid` of the pod.
    pub uid: String,
}

/// Returns the ready endpoints of `service` for its port number `port`, or for all ports; deduplicated and
/// sorted.
pub fn ready(index: &Index, service: &Value, port: Option<i64>) -> Vec<Endpoint> {
    all(index, service, port)
        .into_iter()
        .filter_map(|(endpoint, is_ready)| is_ready.then_some(endpoint))
        .collect()
}

/// Returns the endpoints of `service` like [`ready`], including those that are not ready, each with its
/// readiness.
pub fn all(index: &Index, service: &Value, port: Option<i64>) -> Vec<(Endpoint, bool)> {
    let namespace = object::text(service, "/metadata/namespace").unwrap_or_default();
    let name = object::text(service, "/metadata/name").unwrap_or_default();
    let slices = index.endpoint_slices(namespace, name);
    let mut endpoints = BTreeMap::new();
    let found = slices
        .iter()
        .flat_map(|slice| all_in(slice, &port_names(service, port)));
    for (endpoint, is_ready) in found {
        // Slices may overlap temporarily.
        *endpoints.entry(endpoint).or_default() |= is_ready;
    }
    endpoints.into_iter().collect()
}

/// Returns the names of the Service's ports with this number. The only port of a Service may have no name.
fn port_names(service: &Value, port: Option<i64>) -> Vec<&str> {
    object::items(service, "/spec/ports")
        .iter()
        .filter(|entry| port.is_none() || entry.get("port").and_then(Value::as_i64) == port)
        .map(|entry| object::text(entry, "/name").unwrap_or_default())
        .collect()
}

fn all_in(slice: &Value, port_names: &[&str]) -> Vec<(Endpoint, bool)> {
    let ports: Vec<u16> = object::items(slice, "/ports")
        .iter()
        .filter(|port| port_names.contains(&object::text(port, "/name").unwrap_or_default()))
        .filter_map(|port| u16::try_from(port.get("port")?.as_u64()?).ok())
        .collect();
    let mut endpoints = Vec::new();
    for endpoint in object::items(slice, "/endpoints") {
        // Missing readiness means ready (discovery.k8s.io/v1 EndpointConditions).
        let is_ready = endpoint.pointer("/conditions/ready").and_then(Value::as_bool) != Some(false);
        let pod = (object::text(endpoint, "/targetRef/kind") == Some("Pod"))
            .then(|| {
                Some(Pod {
                    name: object::text(endpoint, "/targetRef/name")?.to_owned(),
                    uid: object::text(endpoint, "/targetRef/uid")
                        .unwrap_or_default()
                        .to_owned(),
                })
            })
            .flatten();
        let addresses = object::items(endpoint, "/addresses")
            .iter()
            .filter_map(|address| address.as_str()?.parse::<IpAddr>().ok());
        for address in addresses {
            endpoints.extend(ports.iter().map(|port| {
                let endpoint = Endpoint {
                    address: SocketAddr::new(address, *port),
                    pod: pod.clone(),
                };
                (endpoint, is_ready)
            }));
        }
    }
    endpoints
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{kind::kinds, watch::Watch};

    #[test]
    fn only_ready_endpoints_of_the_port_are_returned() {
        let index = Index::new();
        index.apply(
            &Watch::all(kinds::ENDPOINT_SLICE),
            json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": {"namespace": "n", "name": "s-1", "labels": {"kubernetes.io/service-name": "s"}},
                "ports": [{"name": "443", "port": 9443}, {"name": "8443", "port": 8443}],
                "endpoints": [
                    {"addresses": ["10.0.0.1"], "conditions": {"ready": true}, "targetRef": {"kind": "Pod", "name": "a", "uid": "1"}},
                    {"addresses": ["10.0.0.2"], "conditions": {"ready": false}},
                    {"addresses": ["10.0.0.3"], "conditions": {}},
                    {"addresses": ["10.0.0.3"], "conditions": {}},
                ]
            }),
        );
        let service = json!({
            "metadata": {"namespace": "n", "name": "s"},
            "spec": {"ports": [{"name": "443", "port": 443}, {"name": "8443", "port": 8443}]}
        });
        let found: Vec<_> = ready(&index, &service, Some(443))
            .into_iter()
            .map(|endpoint| (endpoint.address.to_string(), endpoint.pod.map(|pod| pod.name)))
            .collect();
        assert_eq!(
            found,
            [
                ("10.0.0.1:9443".to_owned(), Some("a".to_owned())),
                ("10.0.0.3:9443".to_owned(), None)
            ]
        );
        assert_eq!(ready(&index, &service, None).len(), 4);
        let others = all(&index, &service, Some(443));
        let others: Vec<_> = others.iter().filter(|(_, is_ready)| !is_ready).collect();
        assert_eq!(others.len(), 1);
        assert_eq!(others[0].0.address.to_string(), "10.0.0.2:9443");
    }
}
