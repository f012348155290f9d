//! Whom webhooks and other callers call.

use std::{collections::BTreeSet, fmt};

use serde_json::Value;
use windlass_bundle::render::Conversion;
use windlass_object::object;
use windlass_trust::injection::TargetKind;

/// The port of a webhook's Service where it names none (`admissionregistration.k8s.io/v1` ServiceReference).
pub const DEFAULT_PORT: i64 = 443;

/// A port of a Service that is called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CalledPort {
    /// The namespace of the Service.
    pub namespace: String,
    /// The Service.
    pub service: String,
    /// The number of its port.
    pub port: i64,
}

/// A path at a port of a Service that is called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CalledPath {
    /// The port.
    pub port: CalledPort,
    /// The path, with a leading slash.
    pub path: String,
}

impl CalledPort {
    /// What an object calls that may carry CA bundles: nothing where it calls URLs, or nobody.
    pub fn all_of(object: &Value) -> BTreeSet<Self> {
        client_configs(object)
            .iter()
            .filter_map(|client| Self::from_reference(object.pointer(&format!("{client}/service"))?))
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

    /// Reads the reference to a Service; `None` if it lacks a name.
    pub fn from_reference(service: &Value) -> Option<Self> {
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

impl CalledPath {
    /// What an object calls, and whose failure it does not ignore.
    pub fn needed_by(object: &Value) -> BTreeSet<Self> {
        let is_ignored = |client: &str| {
            let webhook = client.strip_suffix("/clientConfig").unwrap_or(client);
            object::text(object, &format!("{webhook}/failurePolicy")) == Some("Ignore")
        };
        client_configs(object)
            .iter()
            .filter(|client| !is_ignored(client))
            .filter_map(|client| Self::from_reference(object.pointer(&format!("{client}/service"))?))
            .collect()
    }

    /// What a conversion calls.
    pub fn of_conversion(conversion: &Conversion) -> Self {
        Self {
            port: CalledPort::of_conversion(conversion),
            path: conversion.path.clone(),
        }
    }

    /// Reads the reference to a Service; `None` if it lacks a name.
    pub fn from_reference(service: &Value) -> Option<Self> {
        Some(Self {
            port: CalledPort::from_reference(service)?,
            path: object::text(service, "/path").unwrap_or("/").to_owned(),
        })
    }
}

impl fmt::Display for CalledPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CalledPort {
            namespace,
            service,
            port,
        } = &self.port;
        write!(f, "{} at port {port} of Service {namespace}/{service}", self.path)
    }
}

/// Whether API servers are those who call whom objects of a kind name. Runtime hooks are called by controllers of Cluster API,
/// which a NetworkPolicy may let in alone.
pub fn is_of_api_servers(kind: &str) -> bool {
    kind != "ExtensionConfig"
}

/// Where in an object that may carry CA bundles is what calls a Service.
pub fn client_configs(object: &Value) -> Vec<String> {
    let holders = TargetKind::from_object(object).map(|kind| kind.holders(object));
    holders
        .into_iter()
        .flatten()
        .map(|holder| holder.pointer)
        .collect()
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
        let metadata = json!({"name": "a"});
        let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": metadata, "webhooks": [
            {"name": "a", "clientConfig": client("a", json!(null))}, {"name": "b", "clientConfig": client("a", json!(8443))},
            {"name": "c", "clientConfig": {"url": "https://example.com"}},
        ]});
        assert_eq!(
            CalledPort::all_of(&configuration),
            [call("a", 443), call("a", 8443)].into()
        );
        let definition = |conversion: Value| {
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata,
                "spec": {"conversion": conversion},
            })
        };
        let crd =
            definition(json!({"strategy": "Webhook", "webhook": {"clientConfig": client("b", json!(443))}}));
        assert_eq!(CalledPort::all_of(&crd), [call("b", 443)].into());
        assert!(CalledPort::all_of(&definition(json!({"strategy": "None"}))).is_empty());
        for (api_version, kind, spec) in [
            (
                "runtime.cluster.x-k8s.io/v1beta2",
                "ExtensionConfig",
                json!({"clientConfig": client("c", json!(null))}),
            ),
            ("apiregistration.k8s.io/v1", "APIService", client("c", json!(443))),
        ] {
            let caller = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec});
            assert_eq!(CalledPort::all_of(&caller), [call("c", 443)].into());
        }
    }
    #[test]
    fn what_a_webhook_ignores_when_it_fails_is_not_needed() {
        let webhook = |path: &str, policy: Value| {
            let service = json!({"namespace": "n", "name": "s", "path": path});
            json!({"name": "w", "failurePolicy": policy, "clientConfig": {"service": service}})
        };
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "v"},
            "webhooks": [webhook("/a", json!("Fail")), webhook("/b", json!("Ignore")), webhook("/c", Value::Null)],
        });
        let needed = CalledPath::needed_by(&configuration);
        let needed: Vec<_> = needed.iter().map(ToString::to_string).collect();
        assert_eq!(
            needed,
            ["/a at port 443 of Service n/s", "/c at port 443 of Service n/s"]
        );
    }
}
