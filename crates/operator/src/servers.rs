//! The servers behind Services: pods and other addresses.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::Arc,
};

use futures::{
    StreamExt,
    future::{BoxFuture, FutureExt, ready},
    stream,
};
use serde_json::Value;
use windlass_cluster::{
    Index, endpoints, kinds,
    prober::{Prober, TrustAnchors},
};
use windlass_object::object;
use windlass_trust::trust_bundle::TrustBundle;

use crate::{context::Context, install::traffic::CalledPort};

/// Service names with the ports that targets call.
pub(crate) type CalledPorts = BTreeSet<(String, i64)>;

/// A pod of a Service, or an address that belongs to no pod.
pub(crate) struct Server {
    /// The name of the pod, or the address.
    pub(crate) name: String,
    /// Whether the Service routes traffic to it.
    pub(crate) ready: bool,
    /// Its ports with their addresses: one for each IP family.
    pub(crate) ports: BTreeMap<u16, BTreeSet<Port>>,
    /// Why a server without ports cannot be observed.
    pub(crate) unobserved: &'static str,
}

/// A port of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Port {
    /// The address to dial.
    pub(crate) address: SocketAddr,
    /// The uid of the pod: a later pod may reuse the address.
    pub(crate) pod: Option<String>,
}

/// How many ports one observation dials concurrently, which then takes no longer than one dial. Up to 24 slow
/// observations may run at a time, and a process is limited to 1024 sockets.
pub(crate) const DIALS: usize = 32;

/// Returns the servers of Services on the `called` ports, or on all ports if there are none. If a Service has
/// a selector, only its pods have ports: otherwise, anyone who can write EndpointSlices could make Windlass
/// dial any address.
pub(crate) fn servers(index: &Index, services: &[Arc<Value>], called: &CalledPorts) -> Vec<Server> {
    let mut servers: BTreeMap<String, Server> = BTreeMap::new();
    for service in services {
        let selector = service.pointer("/spec/selector").and_then(Value::as_object);
        let selects = selector.is_some_and(|selector| !selector.is_empty());
        let endpoints = observed_ports(service, called)
            .into_iter()
            .flat_map(|port| endpoints::all(index, service, port));
        for (endpoint, ready) in endpoints {
            let (address, pod) = (endpoint.address, endpoint.pod);
            let ip = address.ip().to_string();
            // All addresses of a pod belong to one server.
            let (id, name) = match &pod {
                Some(pod) => (format!("{}/{}", pod.name, pod.uid), pod.name.clone()),
                None => (ip.clone(), ip),
            };
            let server = servers.entry(id).or_insert_with(|| Server {
                name,
                ready: false,
                ports: BTreeMap::new(),
                unobserved: "no port to connect to",
            });
            server.ready |= ready;
            if selects && pod.is_none() {
                server.unobserved = "not dialed: the Service selects pods, and this address belongs to none";
                continue;
            }
            let pod = pod.map(|pod| pod.uid);
            server
                .ports
                .entry(address.port())
                .or_default()
                .insert(Port { address, pod });
        }
    }
    servers.into_values().collect()
}

/// Returns the ports of a Service to observe: those that targets call, since other ports may serve anything;
/// `None` stands for all ports, if targets call no Service of the certificate.
fn observed_ports(service: &Value, called: &CalledPorts) -> Vec<Option<i64>> {
    if called.is_empty() {
        return vec![None];
    }
    let name = object::text(service, "/metadata/name").unwrap_or_default();
    let own = called.iter().filter(|(service, _)| service == name);
    own.map(|(_, port)| Some(*port)).collect()
}

/// Reports whether every server of the Services, ready or not, presents a certificate that verifies under
/// `trust`. It is false if there are no servers, or one cannot be observed.
pub(crate) async fn are_trusted(
    context: &Context,
    called: BTreeSet<CalledPort>,
    trust: &TrustBundle,
) -> bool {
    let Ok(anchors) = TrustAnchors::parse(trust.to_pem().as_bytes()) else {
        return false;
    };
    let mut dials = Vec::new();
    for CalledPort {
        namespace,
        service: name,
        port,
    } in called
    {
        let key = kinds::SERVICE.object(Some(&namespace), &name);
        let Some(service) = context.index.find(&key) else {
            return false;
        };
        let host = format!("{name}.{namespace}.svc");
        let servers = servers(&context.index, &[service], &CalledPorts::from([(name, port)]));
        if servers.is_empty() || servers.iter().any(|server| server.ports.is_empty()) {
            return false;
        }
        let ports = servers.into_iter().flat_map(|server| server.ports.into_values());
        dials.extend(
            ports.map(|port| is_trusted(context.prober.clone(), port, host.clone(), anchors.clone())),
        );
    }
    // Stops at the first untrusted one.
    stream::iter(dials).buffer_unordered(DIALS).all(ready).await
}

/// Reports whether a port presents a trusted certificate. It may listen on one IP family only.
fn is_trusted(
    prober: Prober,
    addresses: BTreeSet<Port>,
    host: String,
    anchors: TrustAnchors,
) -> BoxFuture<'static, bool> {
    async move {
        let mut is_seen = false;
        for Port { address, .. } in addresses {
            let Ok(presented) = prober.handshake(address, &host, &anchors).await else {
                continue;
            };
            if presented.check_trusted(address).is_err() {
                return false;
            }
            is_seen = true;
        }
        is_seen
    }
    .boxed()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_cluster::watch::Watch;

    use super::*;

    #[test]
    fn only_pods_of_a_service_with_a_selector_are_dialed() {
        let index = Index::new();
        let pod = json!({"kind": "Pod", "name": "a", "uid": "1"});
        index.apply(
            &Watch::all(kinds::ENDPOINT_SLICE),
            json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": {"namespace": "system", "name": "a", "labels": {(endpoints::SERVICE_NAME): "hook"}},
                "ports": [{"name": "", "port": 9443}],
                "endpoints": [
                    {"addresses": ["10.0.0.1"], "targetRef": pod},
                    {"addresses": ["10.0.0.2"]},
                    {"addresses": ["10.0.0.3"], "targetRef": {"kind": "Node", "name": "b"}},
                ],
            }),
        );
        for (selector, dialled) in [(json!({"app": "hook"}), 1), (json!({}), 3)] {
            let service = json!({
                "metadata": {"namespace": "system", "name": "hook"},
                "spec": {"selector": selector, "ports": [{"port": 443}]},
            });
            let servers = servers(&index, &[Arc::new(service)], &BTreeSet::new());
            assert_eq!(servers.len(), 3);
            let seen = servers.iter().filter(|server| !server.ports.is_empty());
            assert_eq!(seen.count(), dialled, "{selector}");
        }
    }
}
