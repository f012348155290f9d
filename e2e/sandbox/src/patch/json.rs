//! JSON patches and merge patches.

use serde_json::Value;

use crate::StatusError;

/// Applies a JSON patch (RFC 6902).
///
/// # Errors
///
/// 422 when a `test` fails or a path does not exist, 400 when `patch` is not a JSON patch.
pub fn json(object: &Value, patch: &Value) -> Result<Value, StatusError> {
    let operations: json_patch::Patch = serde_json::from_value(patch.clone())
        .map_err(|error| StatusError::bad_request(format!("error decoding patch: {error}")))?;
    let mut patched = object.clone();
    json_patch::patch(&mut patched, &operations).map_err(|_| {
        StatusError::new(
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        )
    })?;
    Ok(patched)
}

/// Applies a merge patch (RFC 7396).
pub fn merge(object: &Value, patch: &Value) -> Value {
    let mut patched = object.clone();
    json_patch::merge(&mut patched, patch);
    patched
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_failed_test_is_unprocessable() {
        let object = json!({"spec": {"n": 1}});
        for patch in [
            json!([{"op": "test", "path": "/spec/n", "value": 7}]),
            json!([{"op": "remove", "path": "/spec/zz"}]),
        ] {
            assert_eq!(json(&object, &patch).unwrap_err().code, 422);
        }
        let patch = json!([{"op": "replace", "path": "/spec/n", "value": 2}]);
        assert_eq!(json(&object, &patch).unwrap(), json!({"spec": {"n": 2}}));
    }
}
