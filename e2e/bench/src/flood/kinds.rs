//! The objects of each flood.

use std::net::Ipv4Addr;

use serde_json::{Value, json};
use windlass_object::names;
use windlass_scenarios::sample;

use super::object_flood::ObjectFlood;

/// Where the objects of a flood are.
pub(super) const NAMESPACE: &str = "flood";

/// Labelled Secrets.
pub(super) const SECRETS: u32 = 500;

/// Services with long annotations.
pub(super) const SERVICES: u32 = 200;

/// Bytes of the annotations of each. The API server takes 256 KiB.
pub(super) const ANNOTATION: usize = 250_000;

/// EndpointSlices.
pub(super) const SLICES: u32 = 10_000;

/// Addresses in each.
pub(super) const ADDRESSES: u32 = 10;

/// The Services that the EndpointSlices are of.
pub(super) const HOLES: u32 = 100;

/// Services that name Secrets of others.
pub(super) const ANNOTATED: u32 = 1000;

/// ConfigMaps, each second of which asks for a trust bundle.
pub(super) const CONFIG_MAPS: u32 = 400;

/// The Secrets of others that they name.
pub(super) const FOREIGN: u32 = 10;

/// The most bytes that a Secret may hold (`MaxSecretSize` in k8s.io/api/core/v1), or a ConfigMap.
const SECRET: usize = 1 << 20;

/// How many bytes of a ConfigMap are something else than a trust bundle.
const REST: usize = SECRET - CA;

/// How many of them are a `ca.crt`, which Windlass reads: as many as it keeps of an object, nearly.
const CA: usize = 90_000;

/// How many addresses of this machine there are to choose from.
const NETWORK: u32 = 60_000;

/// How far they are from the first, which are those of servers.
const DISTANCE: u32 = 1024;

/// `bytes` bytes in base64.
fn data(bytes: usize) -> String {
    // "xxx".
    "eHh4".repeat(bytes / 3)
}

/// A patch that changes nothing but an annotation: the whole object is written all the same.
fn touch(_: u32, round: u32) -> Value {
    json!({"metadata": {"annotations": {"flood.example.com/round": round.to_string()}}})
}

/// Secrets that look like those of Windlass.
pub(super) fn secrets() -> ObjectFlood {
    ObjectFlood {
        collection: format!("/api/v1/namespaces/{NAMESPACE}/secrets"),
        count: SECRETS,
        object: Box::new(|number| {
            json!({
                "metadata": {"labels": {names::SERVING_CERTIFICATE: format!("flood-{number}")}},
                "data": {"ca.crt": data(CA), "token": data(SECRET - CA)},
            })
        }),
        rewrite: Box::new(touch),
    }
}

/// Services with long annotations.
pub(super) fn services() -> ObjectFlood {
    ObjectFlood {
        collection: services_path(),
        count: SERVICES,
        object: Box::new(|_| {
            let annotations = json!({"flood.example.com/text": "x".repeat(ANNOTATION)});
            service(&json!({"annotations": annotations}))
        }),
        rewrite: Box::new(touch),
    }
}

/// EndpointSlices of the Services `hole-N`, of addresses from `first` on where nobody answers at `port`.
pub(super) fn endpoint_slices(first: Ipv4Addr, port: u16) -> ObjectFlood {
    let endpoints = move |number: u32, round: u32| -> Value {
        let of_slice = (0..ADDRESSES).map(|place| {
            let distance = (number * ADDRESSES + place + round * 7) % NETWORK;
            let address = Ipv4Addr::from_bits(first.to_bits() + DISTANCE + distance);
            json!({"addresses": [address.to_string()], "conditions": {"ready": true}})
        });
        of_slice.collect()
    };
    ObjectFlood {
        collection: format!("/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"),
        count: SLICES,
        object: Box::new(move |number| {
            json!({
                "metadata": {"labels": {
                    "kubernetes.io/service-name": hole(number % HOLES),
                    "endpointslice.kubernetes.io/managed-by": "flood.example.com",
                }},
                "addressType": "IPv4", "ports": [{"name": "", "port": port, "protocol": "TCP"}],
                "endpoints": endpoints(number, 0),
            })
        }),
        rewrite: Box::new(move |number, round| json!({"endpoints": endpoints(number, round)})),
    }
}

/// Services that name the Secrets `foreign-N`.
pub(super) fn annotated_services() -> ObjectFlood {
    let annotations = |number: u32, round: u32| {
        let secret = foreign((number + round) % FOREIGN);
        json!({"annotations": {names::SERVING_CERT_SECRET: secret}})
    };
    ObjectFlood {
        collection: services_path(),
        count: ANNOTATED,
        object: Box::new(move |number| service(&annotations(number, 0))),
        rewrite: Box::new(move |number, round| json!({"metadata": annotations(number, round)})),
    }
}

/// ConfigMaps as large as the API server takes, each second of which asks for the trust bundle of a ServingCertificate, and has it
/// overwritten.
pub(super) fn config_maps() -> ObjectFlood {
    let asking = |number: u32| match number % 2 {
        0 => json!({names::INJECT_CA_FROM: format!("{}/{}", sample::NAMESPACE, sample::CERTIFICATE)}),
        _ => json!({}),
    };
    ObjectFlood {
        collection: format!("/api/v1/namespaces/{NAMESPACE}/configmaps"),
        count: CONFIG_MAPS,
        object: Box::new(
            move |number| json!({"metadata": {"annotations": asking(number)}, "data": {"rest": "x".repeat(REST)}}),
        ),
        rewrite: Box::new(|_, round| json!({"data": {"ca-bundle.crt": format!("overwritten {round}")}})),
    }
}

/// The collection of the tenant's Services.
pub(super) fn services_path() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/services")
}

/// A Service whose endpoints its owner writes.
pub(super) fn service(metadata: &Value) -> Value {
    json!({"metadata": metadata, "spec": {"ports": [{"port": 443, "targetPort": 9443}]}})
}

/// The name of a Service of black holes.
pub(super) fn hole(number: u32) -> String {
    format!("hole-{number}")
}

/// The name of a Secret of somebody else.
pub(super) fn foreign(number: u32) -> String {
    format!("foreign-{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_as_large_as_the_api_server_takes() {
        let secret = (secrets().object)(1);
        let fields = secret["data"].as_object().unwrap().values();
        let bytes: usize = fields.map(|field| field.as_str().unwrap().len() / 4 * 3).sum();
        assert!(bytes <= SECRET && bytes + 8 > SECRET, "{bytes}");
    }

    #[test]
    fn all_of_a_services_annotations_fit_after_a_rewrite_too() {
        let length = |object: &Value| object["metadata"]["annotations"].to_string().len();
        let flood = services();
        assert!(length(&(flood.object)(0)) + length(&(flood.rewrite)(0, 2)) < 256 << 10);
    }

    #[test]
    fn a_slice_leads_elsewhere_when_it_is_rewritten() {
        let flood = endpoint_slices([10, 244, 0, 1].into(), 9);
        let last = SLICES - 1;
        let (created, rewritten) = ((flood.object)(last), (flood.rewrite)(last, 1));
        assert_eq!(created["endpoints"].as_array().unwrap().len(), 10);
        assert_ne!(created["endpoints"], rewritten["endpoints"]);
        assert!(
            created["endpoints"][0]["addresses"][0]
                .as_str()
                .unwrap()
                .starts_with("10.244.")
        );
    }
}
