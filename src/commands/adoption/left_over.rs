//! Who calls the old servers and is not adopted: API servers go on using connections that they have, also to pods that are about
//! to end, and connect anew when what calls has changed.

use jiff::Timestamp;
use serde_json::Value;
use windlass_adoption::{AdoptionRecord, CA_INJECTORS, marked};
use windlass_cluster::Cluster;
use windlass_object::{json, object};

use super::super::writing::{change, of};

/// Has API servers connect anew to what the callers call that are left over, or gives these callers back what they said before.
/// Whoever writes their CA bundles is kept from that in between.
///
/// # Errors
///
/// When the cluster does not take it.
pub(super) async fn connect_anew(
    cluster: &Cluster,
    record: &AdoptionRecord,
    is_marked: bool,
) -> anyhow::Result<()> {
    let new = new_mark();
    let mark = is_marked.then_some(&*new);
    // What trusts Windlass's CA, too, has got other bytes by that.
    if record.source.is_trusted_ahead() || record.kept().next().is_none() {
        return Ok(());
    }
    for caller in record.callers().filter(|caller| !caller.is_adopted()) {
        let Some(key) = caller.key() else { continue };
        let change_of = |live: &Value| {
            let mut changed = marked(live, mark);
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
            .map_err(|error| of(&key, error))?;
    }
    Ok(())
}

/// A mark that no caller had before.
pub(super) fn new_mark() -> String {
    Timestamp::now().as_nanosecond().to_string()
}
