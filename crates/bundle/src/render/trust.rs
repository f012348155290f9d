//! How targets ask for the trust bundle of whom they call.

use serde_json::Value;
use windlass_object::{ca_injectors::CaInjector, json, names::INJECT_CA_FROM};

/// Annotates a target so that it gets the trust bundle of a Service's ServingCertificate, and keeps it.
pub(super) fn inject_ca(target: &mut Value, namespace: &str, service: &str) {
    json::fields(target, &["metadata", "annotations"])
        .insert(INJECT_CA_FROM.into(), format!("{namespace}/{service}").into());
}

/// Takes out what asks others for it: two injectors would overwrite each other without end.
pub(super) fn remove_other_injectors(target: &mut Value) {
    let asks_another = |annotation: &str| {
        CaInjector::ALL
            .iter()
            .any(|injector| injector.annotations().contains(&annotation))
    };
    json::fields(target, &["metadata", "annotations"]).retain(|name, _| !asks_another(name));
}
