//! Who is behind Services: what answers when one is called.

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

/// Services, by name, and their ports that targets call.
pub(crate) type CalledPorts = BTreeSet<(String, i64)>;

/// A pod of a Service, or an address that is of none.
pub(crate) struct Server {
    /// The name of the pod, or the address.
    pub(crate) name: String,
    /// Whether traffic is sent to it.
    pub(crate) ready: bool,
    /// Its ports, each with the addresses that it may listen on: one for each family of addresses.
    pub(crate) ports: BTreeMap<u16, BTreeSet<Port>>,
    /// Why nothing can be seen of it where it has no ports.
    pub(crate) unseen: &'static str,
}

/// A port of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Port {
    /// Where to dial.
    pub(crate) address: SocketAddr,
    /// The uid of the pod behind it: another pod may have the address next.
    pub(crate) pod: Option<String>,
}

/// How many ports are dialled in one look, all at the same time: one look takes no longer than one dial. Some 24 looks that take
/// long may go on beside each other, and a process may have no more than 1024 sockets.
pub(crate) const DIALS: usize = 32;

/// The servers of Services, on the ports that are `called`; on all, where none is. Only pods of a Service that selects pods have any
/// ports: whoever writes EndpointSlices could have anything dialled.
pub(crate) fn servers(index: &Index, services: &[Arc<Value>], called: &CalledPorts) -> Vec<Server> {
    let mut servers: BTreeMap<String, Server> = BTreeMap::new();
    for service in services {
        let selector = service.pointer("/spec/selector").and_then(Value::as_object);
        let selects = selector.is_some_and(|selector| !selector.is_empty());
        let endpoints = ports(service, called)
            .into_iter()
            .flat_map(|port| endpoints::all(index, service, port));
        for (endpoint, ready) in endpoints {
            let (address, pod) = (endpoint.address, endpoint.pod);
            let ip = address.ip().to_string();
            // All addresses of a pod are one server.
            let (id, name) = match &pod {
                Some(pod) => (format!("{}/{}", pod.name, pod.uid), pod.name.clone()),
                None => (ip.clone(), ip),
            };
            let server = servers.entry(id).or_insert_with(|| Server {
                name,
                ready: false,
                ports: BTreeMap::new(),
                unseen: "no port to connect to",
            });
            server.ready |= ready;
            if selects && pod.is_none() {
                server.unseen = "not dialled: the Service selects pods, and this is none";
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

/// The ports of a Service to look at: those that targets call, since others may serve anything; all (`None`) where no target
/// calls any Service of the certificate.
fn ports(service: &Value, called: &CalledPorts) -> Vec<Option<i64>> {
    if called.is_empty() {
        return vec![None];
    }
    let name = object::text(service, "/metadata/name").unwrap_or_default();
    let of_service = called.iter().filter(|(service, _)| service == name);
    of_service.map(|(_, port)| Some(*port)).collect()
}

/// Whether every server of Services, ready or not, is seen to present what verifies under `trust`. Where one of them cannot be
/// looked at, or there is none, nobody knows.
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
    // The first that is not trusted ends it.
    stream::iter(dials).buffer_unordered(DIALS).all(ready).await
}

/// Whether a port of a server presents what is trusted. It may listen on one family of addresses only.
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
            if presented.trusted(address).is_err() {
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
    fn only_pods_of_a_service_that_selects_pods_are_dialled() {
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
