//! Observation of the certificates that the endpoints of Services serve.

use std::{collections::BTreeMap, sync::Arc};

use futures::StreamExt;
use serde_json::Value;
use windlass_cluster::{
    Index, kinds,
    prober::{Presented, ProbeError, TrustAnchors},
    telemetry::chain,
};
use windlass_object::{ObjectKey, object};
use windlass_trust::{
    injection::InjectionScope,
    objects::CertificateStore,
    pki::{self, DnsNames},
    rotation::{Chain, ObservedEndpoint},
};

use super::{
    probe_schedule::{Presentation, ProbeSchedule},
    service_pods::ServicePod,
};
use crate::{
    context::Context,
    install::traffic::DEFAULT_PORT,
    servers::{CalledPorts, DIALS, Port, Server, servers},
};

/// Returns the Services of a namespace whose DNS name is among `names`.
pub(super) fn services(index: &Index, namespace: &str, names: &DnsNames) -> Vec<Arc<Value>> {
    let mut services = index.objects_within(&kinds::SERVICE, Some(namespace));
    services.retain(|service| {
        let name = object::text(service, "/metadata/name").unwrap_or_default();
        names.match_host(&format!("{name}.{namespace}.svc"))
    });
    services
}

/// Connects to the endpoints of the Services, ready or not. If there are too many for one round, each gets
/// its turn.
pub(super) async fn observe(
    context: &Context,
    schedule: &ProbeSchedule,
    certificate: &ObjectKey,
    names: &DnsNames,
    services: &[Arc<Value>],
    called: &CalledPorts,
    certificates: &mut CertificateStore,
) -> Vec<ObservedEndpoint> {
    let servers = servers(&context.index, services, called);
    let ports = servers.iter().flat_map(|server| server.ports.values().flatten());
    let mut round = schedule.next_round(certificate, ports);
    let dialling = round.due.iter().map(|port| {
        let (prober, name) = (context.prober.clone(), names.primary());
        async move { prober.handshake(port.address, name, &TrustAnchors::none()).await }
    });
    // Collected first: the compiler cannot prove that a stream of borrowing futures is `Send`.
    let dialling: Vec<_> = dialling.collect();
    let answers: Vec<_> = futures::stream::iter(dialling).buffered(DIALS).collect().await;
    for (port, answer) in round.due.iter().zip(answers) {
        context.metrics.record_probe("handshake", answer.is_ok());
        if matches!(answer, Err(ProbeError::Timeout { .. })) {
            round.silent.insert(port.clone());
        }
        let seen = match answer {
            Ok(presented) => read(&presented, certificates),
            Err(error) => Err(chain(&error)),
        };
        round.seen.insert(port.clone(), seen);
    }
    schedule.record(certificate, &round);
    let servers = servers.into_iter();
    servers
        .map(|server| combine_ports(server, &round.seen, !called.is_empty()))
        .collect()
}

/// Adds the creation times of the pods, and counts the pods that are not endpoints yet.
pub(super) fn add_pods(endpoints: &mut [ObservedEndpoint], pods: &[ServicePod]) -> usize {
    for endpoint in endpoints.iter_mut() {
        let pod = pods.iter().find(|pod| pod.name == endpoint.name);
        endpoint.created = pod.and_then(|pod| pod.created);
    }
    let is_starting = |pod: &&ServicePod| !endpoints.iter().any(|endpoint| endpoint.name == pod.name);
    pods.iter().filter(is_starting).count()
}

/// Combines what a server presented on its ports. If `each` port is called, a port that could not be observed
/// makes the endpoint unobservable. Otherwise the other ports suffice, since it may not be a TLS port.
fn combine_ports(server: Server, seen: &BTreeMap<Port, Presentation>, each: bool) -> ObservedEndpoint {
    let mut chains = Vec::new();
    let mut unobservable = None;
    for ports in server.ports.values() {
        let shown = || ports.iter().filter_map(|port| seen.get(port));
        // A server may listen on one address family only.
        let presented: Vec<_> = shown().filter_map(|shown| shown.as_ref().ok()).copied().collect();
        if presented.is_empty() {
            let why = shown().find_map(|shown| shown.as_ref().err());
            unobservable.get_or_insert(
                why.map_or("not probed yet: other endpoints are probed first", String::as_str),
            );
        }
        chains.extend(presented);
    }
    if server.ports.is_empty() {
        unobservable = Some(server.unobserved);
    }
    chains.sort_unstable();
    chains.dedup();
    let is_hidden = !each && !chains.is_empty();
    ObservedEndpoint {
        name: server.name,
        ready: server.ready,
        created: None,
        chains,
        unobservable: unobservable.filter(|_| !is_hidden).map(str::to_owned),
    }
}

/// Returns the Services and ports that a target calls.
pub(super) fn called_ports<'a>(
    scope: &'a InjectionScope,
    target: &'a Value,
) -> impl Iterator<Item = (String, i64)> + 'a {
    scope.holders(target).filter_map(|holder| {
        let service = target.pointer(&format!("{}/service", holder.pointer))?;
        let port = service.get("port").and_then(Value::as_i64);
        let name = object::text(service, "/name")?.to_owned();
        Some((name, port.unwrap_or(DEFAULT_PORT)))
    })
}

fn read(presented: &Presented, certificates: &mut CertificateStore) -> Presentation {
    let mut chain = presented
        .chain
        .iter()
        .map(|der| pki::Certificate::from_der(der.clone()));
    match chain.next() {
        Some(Ok(leaf)) => {
            let cross = chain.next().and_then(Result::ok);
            let cross = cross.map(|cross| certificates.insert_presented(&cross));
            Ok(Chain {
                leaf: certificates.insert_presented(&leaf),
                cross,
            })
        }
        Some(Err(error)) => Err(format!("cannot parse the served certificate: {error}")),
        None => Err("no certificate is served".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use jiff::Timestamp;
    use windlass_trust::{
        pki::Validity,
        rotation::{CertificateId, Digest},
    };

    use super::*;

    fn served(number: u8) -> Presentation {
        let validity = Validity {
            not_before: Timestamp::UNIX_EPOCH,
            not_after: Timestamp::UNIX_EPOCH,
        };
        let leaf = CertificateId {
            fingerprint: Digest([number; 32]),
            key_id: Digest([number; 20]),
            issuer_key_id: Digest([0; 20]),
            validity,
        };
        Ok(Chain { leaf, cross: None })
    }

    fn refused() -> Presentation {
        Err("connection refused".to_owned())
    }

    fn observe(ports: &[(&str, Presentation)], each: bool) -> ObservedEndpoint {
        let mut server = Server {
            name: "pod".to_owned(),
            ready: true,
            ports: BTreeMap::new(),
            unobserved: "",
        };
        let mut seen = BTreeMap::new();
        for (address, presentation) in ports {
            let address: SocketAddr = address.parse().unwrap();
            let port = Port { address, pod: None };
            let addresses = server.ports.entry(address.port()).or_default();
            addresses.insert(port.clone());
            seen.insert(port, presentation.clone());
        }
        combine_ports(server, &seen, each)
    }

    #[test]
    fn a_called_port_that_cannot_be_observed_is_reported() {
        let ports = [("10.0.0.1:9443", served(1)), ("10.0.0.1:8443", refused())];
        let seen = observe(&ports, true);
        assert_eq!(seen.chains.len(), 1);
        assert_eq!(seen.unobservable.as_deref(), Some("connection refused"));
        // If the called ports are not known, one of them may not be a TLS port.
        assert_eq!(observe(&ports, false).unobservable, None);
        assert!(observe(&ports[1..], false).unobservable.is_some());
    }

    #[test]
    fn different_certificates_on_two_ports_are_both_observed() {
        let ports = [("10.0.0.1:9443", served(1)), ("10.0.0.1:8443", served(2))];
        assert_eq!(observe(&ports, true).chains.len(), 2);
    }

    #[test]
    fn a_server_may_listen_on_one_address_family_of_a_dual_stack_service() {
        let ports = [("10.0.0.1:9443", served(1)), ("[fd00::1]:9443", refused())];
        let seen = observe(&ports, true);
        assert_eq!((seen.chains.len(), seen.unobservable), (1, None));
    }

    #[test]
    fn a_pod_without_endpoint_counts_as_starting() {
        let mut endpoints = [observe(&[("10.0.0.1:9443", served(1))], true)];
        let pod = |name: &str| ServicePod {
            name: name.to_owned(),
            created: Some(Timestamp::UNIX_EPOCH),
            controller: None,
        };
        assert_eq!(add_pods(&mut endpoints, &[pod("pod"), pod("other")]), 1);
        assert_eq!(endpoints[0].created, Some(Timestamp::UNIX_EPOCH));
        assert_eq!(add_pods(&mut endpoints, &[]), 0);
    }
}
