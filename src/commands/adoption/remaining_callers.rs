//! Remaining callers of the old servers. API servers reuse open connections, even to terminating pods; they
//! open new connections after the caller's configuration has changed.

use jiff::Timestamp;
use serde_json::Value;
use windlass_adoption::{AdoptionRecord, CA_INJECTORS, with_bundle_mark};
use windlass_cluster::Cluster;
use windlass_object::{json, object};

use super::super::object_changes::{change, with_key};

/// Changes the remaining callers so that API servers open new connections, or restores their previous fields.
/// The CA injectors are kept from writing their caBundles in between.
///
/// # Errors
///
/// When the cluster rejects a write.
pub(super) async fn force_reconnect(
    cluster: &Cluster,
    record: &AdoptionRecord,
    is_marked: bool,
) -> anyhow::Result<()> {
    let new = new_marker();
    let mark = is_marked.then_some(&*new);
    // Callers that also trust Windlass's CA have a changed caBundle already.
    if record.source.is_trusted_ahead() || record.kept_deployments().next().is_none() {
        return Ok(());
    }
    for caller in record.callers().filter(|caller| !caller.is_adopted()) {
        let Some(key) = caller.key() else { continue };
        let change_of = |live: &Value| {
            let mut changed = with_bundle_mark(live, mark);
            let asks = CA_INJECTORS
                .iter()
                .filter_map(|injector| Some((*injector, object::annotation(&caller.object, injector)?)));
            for (injector, value) in asks {
                let annotations = json::fields(&mut changed, &["metadata", "annotations"]);
                match is_marked {
                    true => annotations.shift_remove(injector),
                    false => annotations.insert(injector.to_owned(), value.into()),
                };
            }
            changed
        };
        change(cluster, &key, change_of)
            .await
            .map_err(|error| with_key(&key, error))?;
    }
    Ok(())
}

/// Returns a marker that no caller has had before.
pub(super) fn new_marker() -> String {
    Timestamp::now().as_nanosecond().to_string()
}
