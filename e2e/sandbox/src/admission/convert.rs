//! The conversion that admission webhooks need.

use serde_json::Value;

use crate::StatusError;

/// Converts an object to another version, for webhooks that match that version.
pub trait Convert: Sync {
    /// Returns `object` in `api_version`.
    fn convert(
        &self,
        object: &Value,
        api_version: &str,
    ) -> impl Future<Output = Result<Value, StatusError>> + Send;
}
