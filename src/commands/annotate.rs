//! Asking the operator for something by an annotation.

use anyhow::bail;
use serde_json::{Value, json};
use windlass_cluster::Cluster;
use windlass_object::{ObjectKey, names, patch};

use super::cluster::explained;

/// How often a change that another one came in between is tried.
const TRIES: usize = 5;

/// Sets annotations of an object of ours to what `of` says of it as it is; `list` is the command that shows which objects there are.
///
/// # Errors
///
/// When there is no such object, what `of` fails with, or what keeps it from being written.
pub(super) async fn annotate(
    cluster: &Cluster,
    key: &ObjectKey,
    list: &str,
    of: impl Fn(&Value) -> anyhow::Result<Value>,
) -> anyhow::Result<()> {
    for _ in 0..TRIES {
        let Some(live) = cluster.read(key).await.map_err(explained)? else {
            bail!("{key} not found: to list all, run {list}");
        };
        let patch = patch::relabelled(&live, &json!({}), &of(&live)?);
        match cluster.patch(key, &patch, names::COMMAND).await {
            Ok(_) => return Ok(()),
            // Its status is written often.
            Err(error) if error.is_invalid() || error.is_conflict() => {}
            Err(error) => return Err(explained(error)),
        }
    }
    bail!("{key} keeps changing: try again");
}
