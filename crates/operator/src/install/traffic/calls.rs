//! Whom webhooks call.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_bundle::render::Conversion;
use windlass_object::object;

/// The port of a webhook's Service where it names none (`admissionregistration.k8s.io/v1` ServiceReference).
pub const DEFAULT_PORT: i64 = 443;

/// A port of a Service that webhooks call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CalledPort {
    /// The namespace of the Service.
    pub namespace: String,
    /// The Service.
    pub service: String,
    /// The number of its port.
    pub port: i64,
}

// === impl CalledPort ===

impl CalledPort {
    /// What a webhook configuration or a CustomResourceDefinition calls: nothing where it calls URLs, or nobody.
    pub fn all_of(object: &Value) -> BTreeSet<Self> {
        let webhooks = object::items(object, "/webhooks").iter();
        let clients = webhooks.filter_map(|webhook| webhook.get("clientConfig"));
        clients
            .chain(object.pointer("/spec/conversion/webhook/clientConfig"))
            .filter_map(|client| Self::of(client.get("service")?))
            .collect()
    }

    /// What a conversion calls.
    pub fn of_conversion(conversion: &Conversion) -> Self {
        Self {
            namespace: conversion.namespace.clone(),
            service: conversion.service.clone(),
            port: conversion.port,
        }
    }

    /// What the reference to a Service names.
    pub fn of(service: &Value) -> Option<Self> {
        Some(Self {
            namespace: object::text(service, "/namespace")?.to_owned(),
            service: object::text(service, "/name")?.to_owned(),
            port: service
                .get("port")
                .and_then(Value::as_i64)
                .unwrap_or(DEFAULT_PORT),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_webhook_without_a_port_calls_the_default_one() {
        let call = |service: &str, port| CalledPort {
            namespace: "n".into(),
            service: service.into(),
            port,
        };
        let client =
            |name: &str, port: Value| json!({"service": {"namespace": "n", "name": name, "port": port}});
        let configuration = json!({"webhooks": [
            {"clientConfig": client("a", json!(null))}, {"clientConfig": client("a", json!(8443))},
            {"clientConfig": {"url": "https://example.com"}},
        ]});
        assert_eq!(
            CalledPort::all_of(&configuration),
            [call("a", 443), call("a", 8443)].into()
        );
        let crd = json!({"spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": client("b", json!(443))}}}});
        assert_eq!(CalledPort::all_of(&crd), [call("b", 443)].into());
        assert!(CalledPort::all_of(&json!({"spec": {"conversion": {"strategy": "None"}}})).is_empty());
    }
}
