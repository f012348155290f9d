//! Which places of which servers a webhook configuration sends API traffic to.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_object::object;

/// The port of a webhook's Service where it names none (`admissionregistration.k8s.io/v1` ServiceReference).
pub const DEFAULT_PORT: i64 = 443;

/// A path on a port of a Service.
type Place<'a> = (&'a str, &'a str, i64, &'a str);

/// Whether `live` calls a place that `desired` does not: one that the pods of a new revision need not know.
pub fn calls_elsewhere(live: &Value, desired: &Value) -> bool {
    !places(live).is_subset(&places(desired))
}

fn places(configuration: &Value) -> BTreeSet<Place<'_>> {
    object::items(configuration, "/webhooks")
        .iter()
        .filter_map(|webhook| webhook.pointer("/clientConfig/service"))
        .map(|service| {
            let text = |pointer| object::text(service, pointer).unwrap_or_default();
            let port = service.get("port").and_then(Value::as_i64);
            (
                text("/namespace"),
                text("/name"),
                port.unwrap_or(DEFAULT_PORT),
                text("/path"),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_configuration_calls_elsewhere_when_its_path_port_or_service_is_another() {
        let configuration = |services: &[Value]| {
            let webhooks: Vec<_> = services
                .iter()
                .map(|service| json!({"name": "w", "clientConfig": {"service": service}}))
                .collect();
            json!({"webhooks": webhooks})
        };
        let service = json!({"namespace": "n", "name": "s", "path": "/a"});
        let with = |field: &str, value: Value| {
            let mut other = service.clone();
            other[field] = value;
            other
        };
        let live = configuration(std::slice::from_ref(&service));
        for (desired, expected) in [
            (vec![service.clone()], false),
            (vec![with("port", json!(443))], false),
            (vec![with("path", json!("/b")), service.clone()], false),
            (vec![with("path", json!("/b"))], true),
            (vec![with("port", json!(8443))], true),
            (vec![with("name", json!("t"))], true),
            (vec![], true),
        ] {
            assert_eq!(
                calls_elsewhere(&live, &configuration(&desired)),
                expected,
                "{desired:?}"
            );
        }
        assert!(!calls_elsewhere(&configuration(&[]), &live));
    }
}
