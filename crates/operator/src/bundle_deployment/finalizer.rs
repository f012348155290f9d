//! The finalizer: Windlass gets to disarm before anything goes.

use serde_json::{Value, json};
use windlass_cluster::RequestError;
use windlass_object::{ObjectKey, names, object, patch::guarded};

use crate::context::Context;

/// Sees to it that the finalizer is there.
pub(super) async fn ensure(context: &Context, object: &Value) -> Result<(), RequestError> {
    let mut finalizers = object::finalizers(object);
    if finalizers.contains(&names::FINALIZER) {
        return Ok(());
    }
    finalizers.push(names::FINALIZER);
    write(context, object, &finalizers).await
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
    let key = ObjectKey::of(object).ok_or(RequestError::Nameless)?;
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
