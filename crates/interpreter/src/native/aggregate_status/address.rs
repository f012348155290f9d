//! Aggregates addresses of load balancers.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{AggregateStatusError, Aggregation, Status};

/// Only load balancers have different addresses in each cluster.
pub(super) fn service_status(aggregation: &Aggregation<'_>) -> Result<Option<Status>, AggregateStatusError> {
    match aggregation.object.text("spec.type")? {
        Some("LoadBalancer") => load_balancer_status(aggregation).map(Some),
        _ => Ok(None),
    }
}

/// Each address once, with the ports of all clusters, sorted by address and name.
pub(super) fn load_balancer_status(aggregation: &Aggregation<'_>) -> Result<Status, AggregateStatusError> {
    let mut ports_by_address: BTreeMap<[Option<&str>; 3], Vec<&Value>> = BTreeMap::new();
    for member in aggregation.collected() {
        for ingress in member.read(|status| status.items("loadBalancer.ingress"))? {
            let address = member.read(|_| {
                Ok([
                    ingress.text("ip")?,
                    ingress.text("hostname")?,
                    ingress.text("ipMode")?,
                ])
            })?;
            let ports = ports_by_address.entry(address).or_default();
            for port in member.read(|_| ingress.list("ports"))?.into_iter().flatten() {
                if !ports.contains(&port) {
                    ports.push(port);
                }
            }
        }
    }
    let ingress: Vec<Value> = ports_by_address.into_iter().map(ingress).collect();
    let mut load_balancer = Map::new();
    if !ingress.is_empty() {
        load_balancer.insert("ingress".to_owned(), ingress.into());
    }
    let mut status = aggregation.status()?;
    status.insert("loadBalancer".to_owned(), load_balancer.into());
    Ok(status)
}

fn ingress((address, mut ports): ([Option<&str>; 3], Vec<&Value>)) -> Value {
    let mut ingress = Map::new();
    for (name, value) in ["ip", "hostname", "ipMode"].into_iter().zip(address) {
        if let Some(value) = value {
            ingress.insert(name.to_owned(), value.into());
        }
    }
    if !ports.is_empty() {
        ports.sort_by_key(|port| (port["port"].as_i64(), port.to_string()));
        let ports: Vec<Value> = ports.into_iter().cloned().collect();
        ingress.insert("ports".to_owned(), ports.into());
    }
    ingress.into()
}
