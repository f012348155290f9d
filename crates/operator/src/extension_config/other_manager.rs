//! Detects another manager of ExtensionConfigs, usually that of Cluster API. Two managers would overwrite
//! each other's status forever.

use jiff::Timestamp;
use serde_json::Value;
use windlass_cluster::{Index, watch::Watch};
use windlass_object::{ca_injectors::CaInjector, names, object};

use crate::injector_lease::{held_lease, leases};

/// Who writes the status of an ExtensionConfig.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StatusWriter {
    /// Windlass writes the status.
    Windlass,
    /// Another manager writes the status; with the evidence.
    Other(String),
    /// The caches are not synced, so the writer is not known yet.
    Unknown,
}

/// Returns the watches for the Leases of Cluster API's core manager.
pub(super) fn manager_leases() -> impl Iterator<Item = Watch> {
    leases(CaInjector::ClusterApi)
}

/// Returns who writes the status of `config`.
pub(super) fn status_writer(index: &Index, config: &Value, now: Timestamp) -> StatusWriter {
    match object::annotation(config, names::DISCOVER) {
        Some("true") => return StatusWriter::Windlass,
        Some("false") => {
            return StatusWriter::Other(format!("annotation {}: \"false\"", names::DISCOVER));
        }
        _ => {}
    }
    if !manager_leases().all(|watch| index.is_complete(&watch)) {
        return StatusWriter::Unknown;
    }
    if let Some(lease) = held_lease(index, CaInjector::ClusterApi, now) {
        return StatusWriter::Other(format!("the manager of Cluster API renews {lease}"));
    }
    match later_writer(config) {
        Some(other) => StatusWriter::Other(format!("{other} has also written the status")),
        None => StatusWriter::Windlass,
    }
}

/// Returns the field manager that wrote handlers after Windlass did. A manager that only wrote earlier may no
/// longer exist.
fn later_writer(config: &Value) -> Option<&str> {
    let writers = object::items(config, "/metadata/managedFields")
        .iter()
        .filter(|entry| {
            object::text(entry, "/subresource") == Some("status")
                && entry.pointer("/fieldsV1/f:status/f:handlers").is_some()
        });
    let is_ours = |entry: &&Value| object::text(entry, "/manager") == Some(names::STATUS);
    let (ours, others): (Vec<_>, Vec<_>) = writers.partition(is_ours);
    // RFC 3339 times with the same offset sort as strings.
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
    use crate::injector_lease::tests::lease;

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
        for watch in manager_leases() {
            index.begin_relist(&watch);
            index.finish_relist(&watch);
        }
        index
    }

    #[test]
    fn cluster_apis_manager_takes_precedence_without_annotation() {
        let index = Index::new();
        let config = |discover: Value| json!({"metadata": {"name": "ext1", "annotations": {names::DISCOVER: discover}}});
        assert_eq!(writer(&index, &config(Value::Null)), StatusWriter::Unknown);
        assert_eq!(writer(&index, &config("true".into())), StatusWriter::Windlass);
        assert!(matches!(
            writer(&index, &config("false".into())),
            StatusWriter::Other(_)
        ));
        let index = complete();
        assert_eq!(writer(&index, &config(Value::Null)), StatusWriter::Windlass);
        let renewed = "2026-01-01T00:09:55.000000Z";
        let held = lease(CaInjector::ClusterApi, "capi-system", renewed, "a");
        index.apply(&manager_leases().next().unwrap(), held);
        let found = writer(&index, &config(Value::Null));
        assert!(matches!(found, StatusWriter::Other(_)));
        assert_eq!(writer(&index, &config("true".into())), StatusWriter::Windlass);
    }

    #[test]
    fn a_later_status_writer_takes_precedence() {
        let index = complete();
        let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z");
        for (entries, is_other) in [
            (vec![("manager", early)], false),
            (vec![("manager", early), (names::STATUS, late)], false),
            (vec![("manager", late), (names::STATUS, early)], true),
            (vec![(names::STATUS, early)], false),
        ] {
            let found = writer(&index, &written(&entries));
            assert_eq!(matches!(found, StatusWriter::Other(_)), is_other, "{entries:?}");
        }
    }
}
