//! Dry-run requests (KEP-576).

use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_object::ObjectKey;

use crate::requests::{Cluster, RequestError};

/// Annotation that a dry-run update adds; it is never stored.
const DRY_RUN_MARK: &str = "windlass.dev/tried";

impl Cluster {
    /// Returns the API server's response to creating `object`: admission and validation run, nothing is
    /// stored.
    ///
    /// # Errors
    ///
    /// As [`Cluster::create`].
    pub async fn dry_run_create(&self, object: &Value, manager: &str) -> Result<Value, RequestError> {
        let key = ObjectKey::from_object(object).ok_or(RequestError::Nameless)?;
        let requests = self.requests_for(&key).await?;
        let params = PostParams {
            dry_run: true,
            field_manager: Some(manager.to_owned()),
        };
        let request = requests.create(&params, object.to_string().into_bytes());
        self.send("create (dry run)", &key, request).await
    }

    /// Returns the API server's response to an update that only adds an annotation. For an update without
    /// changes some API servers skip webhooks.
    ///
    /// # Errors
    ///
    /// As [`Cluster::read`], and rejections by webhooks.
    pub async fn dry_run_update(&self, key: &ObjectKey, manager: &str) -> Result<Value, RequestError> {
        let requests = self.requests_for(key).await?;
        let params = PatchParams {
            dry_run: true,
            field_manager: Some(manager.to_owned()),
            ..PatchParams::default()
        };
        let request = requests.patch(
            &key.name,
            &params,
            &Patch::Merge(json!({"metadata": {"annotations": {DRY_RUN_MARK: "true"}}})),
        );
        self.send("update (dry run)", key, request).await
    }
}
