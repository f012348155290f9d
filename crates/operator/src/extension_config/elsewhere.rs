//! Whether somebody else writes the status of ExtensionConfigs: Cluster API's own manager does, and two writers take turns for ever.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use windlass_cluster::{
    Index, kinds,
    watch::{Selector, Watch},
};
use windlass_object::{names, object};

/// Who writes the status of an ExtensionConfig.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StatusWriter {
    /// We do.
    Windlass,
    /// Somebody else does, or is to.
    Elsewhere(String),
    /// It is not known yet.
    Unknown,
}

/// The Lease of Cluster API's core manager (`LeaderElectionID` of `core/main.go`), in whatever namespace that runs.
pub(super) const MANAGER_LEASE: &str = "controller-leader-election-capi";

/// For how long after its last renewal a Lease is somebody's at the least.
const RENEWED_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// The watch that sees the Leases of Cluster API's core managers.
pub(super) fn manager_leases() -> Watch {
    Watch::all(kinds::LEASE).selected(Selector::Name(MANAGER_LEASE.to_owned()))
}

/// Who writes the status of `config`.
pub(super) fn status_writer(index: &Index, config: &Value, now: Timestamp) -> StatusWriter {
    match object::annotation(config, names::DISCOVER) {
        Some("true") => return StatusWriter::Windlass,
        Some("false") => {
            return StatusWriter::Elsewhere(format!("annotation {}: \"false\"", names::DISCOVER));
        }
        _ => {}
    }
    if !index.is_complete(&manager_leases()) {
        return StatusWriter::Unknown;
    }
    let leases = index.select(&kinds::LEASE, |lease| {
        object::text(lease, "/metadata/name") == Some(MANAGER_LEASE) && is_held(lease, now)
    });
    if let Some((lease, _)) = leases.into_iter().next() {
        return StatusWriter::Elsewhere(format!("the manager of Cluster API renews {lease}"));
    }
    match later_writer(config) {
        Some(other) => StatusWriter::Elsewhere(format!("{other} has written the status, too")),
        None => StatusWriter::Windlass,
    }
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

/// Who has written handlers after we did. Who wrote some before we ever did may be gone since.
fn later_writer(config: &Value) -> Option<&str> {
    let writers = object::items(config, "/metadata/managedFields")
        .iter()
        .filter(|entry| {
            object::text(entry, "/subresource") == Some("status")
                && entry.pointer("/fieldsV1/f:status/f:handlers").is_some()
        });
    let is_ours = |entry: &&Value| object::text(entry, "/manager") == Some(names::STATUS);
    let (ours, others): (Vec<_>, Vec<_>) = writers.partition(is_ours);
    // In RFC 3339 with the same offset, later is greater.
    let written = ours
        .iter()
        .filter_map(|entry| object::text(entry, "/time"))
        .max()?;
    let later = others
        .iter()
        .find(|entry| object::text(entry, "/time").is_some_and(|time| time > written));
    later.and_then(|entry| object::text(entry, "/manager"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: &str = "2026-01-01T00:10:00Z";

    fn writer(index: &Index, config: &Value) -> StatusWriter {
        status_writer(index, config, NOW.parse().unwrap())
    }

    fn written(entries: &[(&str, &str)]) -> Value {
        let entries: Vec<_> = entries
            .iter()
            .map(|(manager, time)| {
                json!({
                    "manager": manager, "operation": "Update", "subresource": "status", "time": time,
                    "fieldsV1": {"f:status": {"f:handlers": {}}},
                })
            })
            .collect();
        json!({"metadata": {"name": "ext1", "managedFields": entries}})
    }

    fn complete() -> Index {
        let index = Index::new();
        index.begin_relist(&manager_leases());
        index.finish_relist(&manager_leases());
        index
    }

    #[test]
    fn who_is_not_asked_about_lets_cluster_apis_manager_write() {
        let index = Index::new();
        let config = |discover: Value| json!({"metadata": {"name": "ext1", "annotations": {names::DISCOVER: discover}}});
        assert_eq!(writer(&index, &config(Value::Null)), StatusWriter::Unknown);
        assert_eq!(writer(&index, &config("true".into())), StatusWriter::Windlass);
        assert!(matches!(
            writer(&index, &config("false".into())),
            StatusWriter::Elsewhere(_)
        ));
        let index = complete();
        assert_eq!(writer(&index, &config(Value::Null)), StatusWriter::Windlass);
        for (renewed, holder, is_elsewhere) in [
            ("2026-01-01T00:09:55.000000Z", "a", true),
            ("2026-01-01T00:09:55.000000Z", "", false),
            ("2026-01-01T00:08:00.000000Z", "a", false),
        ] {
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"namespace": "capi-system", "name": MANAGER_LEASE},
                "spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15},
            });
            index.apply(&manager_leases(), lease);
            let found = writer(&index, &config(Value::Null));
            assert_eq!(
                matches!(found, StatusWriter::Elsewhere(_)),
                is_elsewhere,
                "{renewed} {holder}"
            );
            assert_eq!(writer(&index, &config("true".into())), StatusWriter::Windlass);
        }
    }

    #[test]
    fn who_writes_after_us_is_left_to_it() {
        let index = complete();
        let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z");
        for (entries, is_elsewhere) in [
            (vec![("manager", early)], false),
            (vec![("manager", early), (names::STATUS, late)], false),
            (vec![("manager", late), (names::STATUS, early)], true),
            (vec![(names::STATUS, early)], false),
        ] {
            let found = writer(&index, &written(&entries));
            assert_eq!(
                matches!(found, StatusWriter::Elsewhere(_)),
                is_elsewhere,
                "{entries:?}"
            );
        }
    }
}
