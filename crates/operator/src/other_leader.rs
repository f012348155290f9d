//! Whether another program is at work, by the Lease with which it elects its leader.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use windlass_cluster::{
    Index, kinds,
    watch::{Selector, Watch},
};
use windlass_object::{ObjectKey, object};

/// For how long after its last renewal a Lease is somebody's at the least.
const RENEWED_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// The watch that sees the Leases of this name, in whatever namespace.
pub(crate) fn leases(name: &str) -> Watch {
    Watch::all(kinds::LEASE).selected(Selector::Name(name.to_owned()))
}

/// The Lease of this name that somebody renews, if any is seen to be.
pub(crate) fn held_lease(index: &Index, name: &str, now: Timestamp) -> Option<ObjectKey> {
    let held = index.select(&kinds::LEASE, |lease| {
        object::text(lease, "/metadata/name") == Some(name) && is_held(lease, now)
    });
    held.into_keys().next()
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

    /// A Lease that `holder` has renewed.
    pub(crate) fn lease(name: &str, renewed: &str, holder: &str) -> Value {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"namespace": "others-system", "name": name},
            "spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15},
        })
    }

    #[test]
    fn a_lease_is_held_as_long_as_somebody_renews_it() {
        let index = Index::new();
        for (name, renewed, holder, expected) in [
            ("a", "2026-01-01T00:09:55.000000Z", "a", true),
            ("a", "2026-01-01T00:09:55.000000Z", "", false),
            ("a", "2026-01-01T00:08:00.000000Z", "a", false),
            ("a", "", "a", false),
            ("b", "2026-01-01T00:09:55.000000Z", "a", false),
        ] {
            index.apply(&leases("a"), lease(name, renewed, holder));
            let held = held_lease(&index, "a", NOW.parse().unwrap());
            assert_eq!(held.is_some(), expected, "{name} {renewed} {holder}");
        }
    }
}
