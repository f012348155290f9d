//! Detects a running CA injector by the Lease of its leader election.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use windlass_cluster::{
    Index, kinds,
    watch::{Selector, Watch},
};
use windlass_object::{ObjectKey, ca_injectors::CaInjector, object};

/// Minimum time since the last renewal after which a Lease counts as abandoned.
const RENEWED_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// Returns the watches for the Leases of an injector.
pub(crate) fn leases(injector: CaInjector) -> impl Iterator<Item = Watch> {
    let (namespaces, name) = injector.leases();
    namespaces.iter().map(|namespace| {
        let named = Selector::Name(name.to_owned());
        Watch::all(kinds::LEASE).within(namespace).selected(named)
    })
}

/// Returns the Lease of an injector that is being renewed, if there is one.
pub(crate) fn held_lease(index: &Index, injector: CaInjector, now: Timestamp) -> Option<ObjectKey> {
    let (namespaces, name) = injector.leases();
    let mut leases = namespaces
        .iter()
        .map(|namespace| kinds::LEASE.object(Some(namespace), name));
    leases.find(|lease| index.find(lease).is_some_and(|lease| is_held(&lease, now)))
}

/// Reports whether a Lease is being renewed.
fn is_held(lease: &Value, now: Timestamp) -> bool {
    let text = |pointer| object::text(lease, pointer).filter(|text| !text.is_empty());
    let renewed = text("/spec/renewTime").and_then(|time| time.parse::<Timestamp>().ok());
    let lasts = lease
        .pointer("/spec/leaseDurationSeconds")
        .and_then(Value::as_i64);
    let lasts = SignedDuration::from_secs(lasts.unwrap_or_default().clamp(0, 3600));
    text("/spec/holderIdentity").is_some()
        && renewed.is_some_and(|renewed| now.duration_since(renewed) < lasts.max(RENEWED_WITHIN))
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    const NOW: &str = "2026-01-01T00:10:00Z";

    /// A Lease of an injector, renewed by `holder`.
    pub(crate) fn lease(injector: CaInjector, namespace: &str, renewed: &str, holder: &str) -> Value {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"namespace": namespace, "name": injector.leases().1},
            "spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15},
        })
    }

    #[test]
    fn a_lease_is_held_while_its_injector_renews_it_in_an_expected_namespace() {
        for (namespace, renewed, holder, expected) in [
            ("kube-system", "2026-01-01T00:09:55.000000Z", "a", true),
            ("cert-manager", "2026-01-01T00:09:55.000000Z", "a", true),
            ("kube-system", "2026-01-01T00:09:55.000000Z", "", false),
            ("kube-system", "2026-01-01T00:08:00.000000Z", "a", false),
            ("kube-system", "", "a", false),
            ("a-tenant", "2026-01-01T00:09:55.000000Z", "a", false),
        ] {
            let index = Index::new();
            let lease = lease(CaInjector::CertManager, namespace, renewed, holder);
            index.apply(&Watch::all(kinds::LEASE), lease);
            let now = NOW.parse().unwrap();
            let held = held_lease(&index, CaInjector::CertManager, now);
            assert_eq!(held.is_some(), expected, "{namespace} {renewed} {holder}");
            assert_eq!(held_lease(&index, CaInjector::ClusterApi, now), None);
        }
    }
}
