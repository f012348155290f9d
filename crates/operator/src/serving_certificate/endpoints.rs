//! What the endpoints of Services serve.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use futures::StreamExt;
use serde_json::Value;
use windlass_cluster::{
    Index, endpoints, kinds,
    prober::{Presented, TrustAnchors},
    telemetry::chain,
};
use windlass_object::object;
use windlass_trust::{
    injection,
    objects::CertificateStore,
    pki::{self, DnsNames},
    rotation::{Chain, Handshake, ObservedEndpoint},
};

use crate::{context::Context, install::traffic::DEFAULT_PORT};

/// How many endpoints of a Service are dialled at a time.
const DIALS: usize = 32;

/// One address of a Service.
struct Server {
    name: String,
    ready: bool,
    addresses: BTreeSet<SocketAddr>,
}

/// The Services of a namespace for which a certificate with these names is.
pub(super) fn services(index: &Index, namespace: &str, names: &DnsNames) -> Vec<Arc<Value>> {
    let mut services = index.objects(&kinds::SERVICE);
    services.retain(|service| {
        let text = |pointer| object::text(service, pointer).unwrap_or_default();
        text("/metadata/namespace") == namespace
            && names.cover(&format!("{}.{namespace}.svc", text("/metadata/name")))
    });
    services
}

/// Dials every endpoint of the Services, ready or not.
pub(super) async fn observe(
    context: &Context,
    names: &DnsNames,
    services: &[Arc<Value>],
    targets: &[Arc<Value>],
    certificates: &mut CertificateStore,
) -> Vec<ObservedEndpoint> {
    let servers = servers(&context.index, names, services, targets);
    let dials: Vec<_> = servers
        .iter()
        .enumerate()
        .flat_map(|(index, server)| server.addresses.iter().map(move |address| (index, *address)))
        .map(|(index, address)| {
            let (prober, name) = (context.prober, names.primary().to_owned());
            async move {
                (
                    index,
                    prober.handshake(address, &name, &TrustAnchors::none()).await,
                )
            }
        })
        .collect();
    let seen: Vec<_> = futures::stream::iter(dials).buffered(DIALS).collect().await;
    let mut served: Vec<Option<Handshake>> = servers.iter().map(|_| None).collect();
    for (index, result) in seen {
        context.metrics.probed("handshake", result.is_ok());
        let now = match result {
            Ok(presented) => read(&presented, certificates),
            Err(error) => Handshake::Unobservable(chain(&error)),
        };
        served[index] = Some(match served[index].take() {
            Some(before) => older(before, now),
            None => now,
        });
    }
    servers
        .into_iter()
        .zip(served)
        .map(|(server, served)| ObservedEndpoint {
            name: server.name,
            ready: server.ready,
            served: served.unwrap_or_else(|| Handshake::Unobservable("no port to connect to".to_owned())),
        })
        .collect()
}

fn servers(index: &Index, names: &DnsNames, services: &[Arc<Value>], targets: &[Arc<Value>]) -> Vec<Server> {
    let called = called_ports(names, targets);
    let mut servers: BTreeMap<IpAddr, Server> = BTreeMap::new();
    let endpoints = services.iter().flat_map(|service| {
        ports(service, &called)
            .into_iter()
            .flat_map(|port| endpoints::all(index, service, port))
    });
    for (endpoint, ready) in endpoints {
        let address = endpoint.address;
        let server = servers.entry(address.ip()).or_insert_with(|| Server {
            name: endpoint
                .pod
                .map_or_else(|| address.ip().to_string(), |pod| pod.name),
            ready: false,
            addresses: BTreeSet::new(),
        });
        server.ready |= ready;
        server.addresses.insert(address);
    }
    servers.into_values().collect()
}

/// The ports of a Service to look at: those that targets call, since others may serve anything; all (`None`) where no target
/// calls any Service of the certificate.
fn ports(service: &Value, called: &BTreeSet<(String, i64)>) -> Vec<Option<i64>> {
    if called.is_empty() {
        return vec![None];
    }
    let name = object::text(service, "/metadata/name").unwrap_or_default();
    let of_service = called.iter().filter(|(service, _)| service == name);
    of_service.map(|(_, port)| Some(*port)).collect()
}

/// The Services, by name, and their ports that targets call.
fn called_ports(names: &DnsNames, targets: &[Arc<Value>]) -> BTreeSet<(String, i64)> {
    targets
        .iter()
        .flat_map(|target| {
            injection::holders(target, Some(names)).filter_map(|holder| {
                let service = target.pointer(&format!("{}/service", holder.pointer))?;
                let port = service.get("port").and_then(Value::as_i64);
                let name = object::text(service, "/name")?.to_owned();
                Some((name, port.unwrap_or(DEFAULT_PORT)))
            })
        })
        .collect()
}

fn read(presented: &Presented, certificates: &mut CertificateStore) -> Handshake {
    let mut chain = presented
        .chain
        .iter()
        .map(|der| pki::Certificate::from_der(der.clone()));
    match chain.next() {
        Some(Ok(leaf)) => {
            let cross = chain.next().and_then(Result::ok);
            let cross = cross.map(|cross| certificates.learn_presented(&cross));
            Handshake::Chain(Chain {
                leaf: certificates.learn_presented(&leaf),
                cross,
            })
        }
        Some(Err(error)) => Handshake::Unobservable(format!("cannot parse the served certificate: {error}")),
        None => Handshake::Unobservable("no certificate is served".to_owned()),
    }
}

/// Of what two ports of one address serve, what ends first: it is there that a certificate was not renewed. A port
/// that speaks no TLS says nothing.
fn older(one: Handshake, other: Handshake) -> Handshake {
    match (&one, &other) {
        (Handshake::Unobservable(_), Handshake::Chain(_)) => other,
        (Handshake::Chain(of_one), Handshake::Chain(of_other))
            if of_other.leaf.validity.not_after < of_one.leaf.validity.not_after =>
        {
            other
        }
        _ => one,
    }
}
