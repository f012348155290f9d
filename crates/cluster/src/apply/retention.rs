//! What of a live object an apply must not take back.

use std::{error::Error, future::Future, pin::Pin};

use serde_json::Value;
use windlass_object::{names, object};

use super::applicant::Applicant;

/// Knows which fields of live objects belong to their cluster, although bundles have them, too.
pub trait Retention: Send + Sync {
    /// `desired` with what `live` has of those fields; `None` where nothing is known of the kind.
    fn retain<'a>(&'a self, desired: &'a Value, live: &'a Value, owner: &'a Applicant) -> Retaining<'a>;
}

/// An answer that may take a while.
pub type Retaining<'a> = Pin<Box<dyn Future<Output = Result<Option<Value>, RetainError>> + Send + 'a>>;

/// It cannot be said what is to be kept.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct RetainError(pub Box<dyn Error + Send + Sync>);

/// Nothing is kept but what nobody else applies.
pub(super) struct NothingRetained;

/// `body` with what is kept of `live`: as `kept` has it, but for names and marks. It is written only to the object as it was seen:
/// what is kept of it must not be older than it is.
pub(super) fn retained(body: Value, mut kept: Value, live: &Value) -> Value {
    kept["metadata"] = body["metadata"].clone();
    for field in ["apiVersion", "kind"] {
        kept[field] = body[field].clone();
    }
    if let Some(kept) = kept.as_object_mut() {
        kept.remove("status");
    }
    if kept == body {
        return body;
    }
    kept["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
    kept
}

/// The hash in a body, which is that of what is desired, whatever is kept.
pub(super) fn hash_in(body: &Value) -> &str {
    object::annotation(body, names::APPLIED_HASH).unwrap_or_default()
}

// === impl NothingRetained ===

impl Retention for NothingRetained {
    fn retain<'a>(&'a self, _: &'a Value, _: &'a Value, _: &'a Applicant) -> Retaining<'a> {
        Box::pin(async { Ok(None) })
    }
}
