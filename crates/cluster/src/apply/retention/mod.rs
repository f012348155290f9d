//! Values of other clients that an apply keeps.
//!
//! A bundle has `replicas: 1`, an autoscaler has set 5. A [`Retention`] is called for such an object: from
//! the desired and the observed object it computes the desired object *with the values to retain*. The
//! applier does not know which values these are, or why. It guarantees:
//!
//! 1. **No write without a change.** The hash in an object's annotation ([`names::APPLIED_HASH`]) is that of the
//!    desired object without retained values, so a change of a retained value does not cause a write. For the comparison with the desired object
//!    each retained value of the observed object is replaced by the desired one (`KeptValues::masked`): changes of other
//!    fields are still found and reverted. The remembered response of the API server is treated the same way, so it does not
//!    hide a value once it is no longer retained.
//! 2. **No conflict over a retained value.** Server-side apply records who owns a field. If we send a value, we own or co-own it:
//!    another manager that applies a different value gets a conflict, and a later bundle without the field removes it. So a retained value is not
//!    sent, as long as that leaves it unchanged (`body_to_send`, by `metadata.managedFields`):
//!
//!    | owner of the retained value | what is sent | why |
//!    |---|---|---|
//!    | others, or none | nothing | an apply removes only fields that its own manager had applied |
//!    | we and others | nothing, guarded | the others keep it |
//!    | others or none, and it equals the desired value | the desired value, guarded if others own it | the answer does not show that it is retained |
//!    | we alone | the observed value, guarded | without it, it would be removed: `replicas` would fall to the default of 1 |
//!    | none, in an object whose owned fields we give up completely | the observed value, guarded | it would be removed with the object |
//!    | unknown (an entry of another version of the API) | the observed value, guarded | the value matters more than its owner |
//!
//!    The third row is the hand-over from a release that owned the field. It needs no second step: when the autoscaler updates the value,
//!    our ownership ends, and the first row applies.
//! 3. **No stale write.** Sent values that are not in the desired object, and fields that we give up, are
//!    guarded by the `metadata.resourceVersion` at which they were read. After a write by another client the API server responds with 409,
//!    and the object is read and computed again.
//! 4. **No write after a failure.** If a retention fails, returns another object, or omits a field that is both
//!    desired and live, the error names the object, the field and the retention's source.
//! 5. **No cost without a retention.** An object without a source of retained values, or without retained values, is applied as
//!    without a retention. Owners are read from the API server, since the index does not have them: only before a write,
//!    and only if values are retained or other managers write more of the object than its status.
//!
//! Lists are compared by item if the managed fields show the keys of the items. Other lists, and objects that
//! are a single value to the API server (`mapType=atomic`, such as the selector of a Service), are retained
//! or sent as a whole.
//!
//! There is no retention for callers of webhooks ([`Applier::ensure_armed`](super::Applier::ensure_armed)):
//! their calls are verified, and change by a single write.
//!
//! [`names::APPLIED_HASH`]: windlass_object::names::APPLIED_HASH

mod field_managers;
mod goal;
mod kept_values;
mod sent_body;
#[cfg(test)]
mod tests;

use futures::future::BoxFuture;
use serde_json::Value;
use tower::BoxError;

pub(super) use self::goal::{ApplyGoal, RetainedGoal};

/// The result of a [`Retention`]: the desired object with the values to retain.
pub type RetentionFuture<'a> = BoxFuture<'a, Result<Option<Value>, BoxError>>;

/// Computes the values of other clients that an apply must keep.
pub trait Retention: Send + Sync {
    /// Returns the source of retained values for objects such as `desired`, for example
    /// `ResourceInterpreterCustomization clonesets`; `None` if there is none. Must be cheap: it is called at
    /// every comparison. For an object that the index holds incompletely (large ones, ConfigMaps,
    /// CustomResourceDefinitions) a source costs a request per comparison.
    fn answered_by(&self, desired: &Value) -> Option<String>;

    /// Returns `desired` with the values to retain from `observed`; `None` if there is no source after all.
    ///
    /// `desired` is the object to apply, with the marks of its owner and without status; `observed` is the
    /// live object, whose `metadata.managedFields` may lack the owned fields. The result may differ from
    /// `desired` in fields that the bundle or the cluster sets; marks, status, and metadata that only the API
    /// server sets are ignored. Equal objects must give equal results.
    ///
    /// # Errors
    ///
    /// Why the values to retain are unknown: nothing is written then.
    fn retain<'a>(&'a self, desired: &'a Value, observed: &'a Value) -> RetentionFuture<'a>;
}
