//! Annotations that request the injection of a trust bundle.

use serde_json::Value;
use windlass_object::{ca_injectors::CaInjector, json, names::INJECT_CA_FROM};

/// Annotates a target so that the trust bundle of a Service's ServingCertificate is injected into it.
pub(super) fn inject_ca(target: &mut Value, namespace: &str, service: &str) {
    json::fields(target, &["metadata", "annotations"])
        .insert(INJECT_CA_FROM.into(), format!("{namespace}/{service}").into());
}

/// Removes the annotations of other CA injectors: two injectors would overwrite each other endlessly.
pub(super) fn remove_other_injectors(target: &mut Value) {
    let asks_another = |annotation: &str| {
        CaInjector::ALL
            .iter()
            .any(|injector| injector.annotations().contains(&annotation))
    };
    json::fields(target, &["metadata", "annotations"]).retain(|name, _| !asks_another(name));
}
