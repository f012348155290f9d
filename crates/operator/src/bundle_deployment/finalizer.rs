//! The finalizer: Windlass gets to disarm before anything goes.

use serde_json::{Value, json};
use windlass_cluster::RequestError;
use windlass_object::{ObjectKey, names, object, patch::guarded};

use crate::context::Context;

/// How often the finalizer is written where somebody else writes the object at the same time.
const TRIES: usize = 3;

/// Sees to it that the finalizer is there. A watch that lags shows the object as it was before another write: that is
/// told from a refusal, which is to be reported.
pub(super) async fn ensure(context: &Context, object: &Value) -> Result<(), RequestError> {
    let mut live = object.clone();
    for last in (0..TRIES).rev() {
        let mut finalizers = object::finalizers(&live);
        if finalizers.contains(&names::FINALIZER) {
            return Ok(());
        }
        finalizers.push(names::FINALIZER);
        match write(context, &live, &finalizers).await {
            Err(error) if last > 0 && (error.is_invalid() || error.is_conflict()) => {
                let key = ObjectKey::from_object(&live).ok_or(RequestError::Nameless)?;
                let read = context.cluster.read(&key).await?;
                let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
                match read.filter(|read| version(read) != version(&live)) {
                    Some(read) => live = read,
                    None => return Err(error),
                }
            }
            result => return result,
        }
    }
    Ok(())
}

/// Takes the finalizer away: the object goes.
pub(super) async fn remove(context: &Context, object: &Value) -> Result<(), RequestError> {
    let kept: Vec<_> = object::finalizers(object)
        .into_iter()
        .filter(|finalizer| *finalizer != names::FINALIZER)
        .collect();
    match write(context, object, &kept).await {
        Err(error) if error.is_not_found() => Ok(()),
        result => result,
    }
}

/// Guarded by the resourceVersion, since others have finalizers too.
async fn write(context: &Context, object: &Value, finalizers: &[&str]) -> Result<(), RequestError> {
    let key = ObjectKey::from_object(object).ok_or(RequestError::Nameless)?;
    let patch = guarded(
        &[(
            "/metadata/resourceVersion",
            &object["metadata"]["resourceVersion"],
        )],
        "/metadata/finalizers",
        &json!(finalizers),
    );
    context.cluster.patch(&key, &patch, names::INSTALL).await?;
    Ok(())
}
