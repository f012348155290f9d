//! Whether another CA injector is at work, by the Lease with which it elects its leader.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use windlass_cluster::{
    Index, kinds,
    watch::{Selector, Watch},
};
use windlass_object::{ObjectKey, ca_injectors::CaInjector, object};

/// For how long after its last renewal a Lease is somebody's at the least.
const RENEWED_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// The watches that see the Leases of an injector.
pub(crate) fn leases(injector: CaInjector) -> impl Iterator<Item = Watch> {
    let (namespaces, name) = injector.leases();
    namespaces.iter().map(|namespace| {
        let named = Selector::Name(name.to_owned());
        Watch::all(kinds::LEASE).within(namespace).selected(named)
    })
}

/// The Lease of an injector that somebody renews, if any is seen to be.
pub(crate) fn held_lease(index: &Index, injector: CaInjector, now: Timestamp) -> Option<ObjectKey> {
    let (namespaces, name) = injector.leases();
    let mut leases = namespaces
        .iter()
        .map(|namespace| kinds::LEASE.object(Some(namespace), name));
    leases.find(|lease| index.find(lease).is_some_and(|lease| is_held(&lease, now)))
}

/// Whether somebody renews a Lease.
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

    /// The Lease of an injector in a namespace, which `holder` has renewed.
    pub(crate) fn lease(injector: CaInjector, namespace: &str, renewed: &str, holder: &str) -> Value {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"namespace": namespace, "name": injector.leases().1},
            "spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15},
        })
    }

    #[test]
    fn a_lease_is_held_where_an_injector_has_it_and_as_long_as_somebody_renews_it() {
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
