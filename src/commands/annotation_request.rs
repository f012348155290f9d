//! Requests to the operator by annotation.

use anyhow::bail;
use serde_json::{Value, json};
use windlass_cluster::Cluster;
use windlass_object::{ObjectKey, names, patch};

use super::cluster::explain_error;

/// How often a change is tried that conflicts with another client's change.
const TRIES: usize = 5;

/// Sets annotations of an object to the `values` computed from its current state; `list` is the command that
/// lists such objects.
///
/// # Errors
///
/// When the object does not exist, `values` fails, or it cannot be written.
pub(super) async fn annotate(
    cluster: &Cluster,
    key: &ObjectKey,
    list: &str,
    values: impl Fn(&Value) -> anyhow::Result<Value>,
) -> anyhow::Result<()> {
    for _ in 0..TRIES {
        let Some(live) = cluster.read(key).await.map_err(explain_error)? else {
            bail!("{key} not found: to list all, run {list}");
        };
        let patch = patch::relabelled(&live, &json!({}), &values(&live)?);
        match cluster.patch(key, &patch, names::COMMAND).await {
            Ok(_) => return Ok(()),
            // The operator writes the status often, which causes conflicts.
            Err(error) if error.is_invalid() || error.is_conflict() => {}
            Err(error) => return Err(explain_error(error)),
        }
    }
    bail!("{key} keeps changing: try again");
}
