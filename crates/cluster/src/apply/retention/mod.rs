//! What an apply keeps of what others have set in an object.
//!
//! A bundle says `replicas: 1`, an autoscaler has made it 5. A [`Retention`] is asked about such an object: given what is
//! desired and what is observed, it answers what is desired *with what must be kept*. The applier does not know what is kept by
//! whom and why; it makes sure of these:
//!
//! 1. **Nothing is written when nothing changes.** The hash that an object carries ([`names::APPLIED_HASH`]) is that of what is
//!    desired, before anything is kept, so no change of a kept value is a reason to write. What is compared with the desired object
//!    is the observed one in which each kept value is replaced by the desired one (`KeptValues::hidden`): a change of any other
//!    field is found, and put back, as ever. What is remembered of an answer of the API server is hidden likewise, so no memory
//!    excuses a kept value once it is not to be kept any more.
//! 2. **Nobody is fought over a kept value.** Server-side apply knows who owns a field. A value that we send is ours, or ours too:
//!    whoever applies another one meets a conflict, and a later bundle that says nothing of it removes it. So a kept value is left
//!    out of what is sent, as long as leaving it out changes nothing (`what_is_sent`, by `metadata.managedFields`):
//!
//!    | who owns the kept value | what is sent | why |
//!    |---|---|---|
//!    | others, or nobody | nothing | an apply removes only what its own manager had applied |
//!    | we and others | nothing, guarded | it stays the others' |
//!    | others or nobody, and it is what is desired, too | the desired value, guarded if it is others' | an answer does not say that it is kept |
//!    | we alone | the observed value, guarded | left out, it would be removed: `replicas` would fall to the default of 1 |
//!    | nobody, in an object of which we give up all that is owned | the observed value, guarded | it would go with what it is in |
//!    | it cannot be told (an entry of another version of the API) | the observed value, guarded | the value counts more than whose it is |
//!
//!    The third row is the hand-over from a version that owned the field. It needs no second step: as soon as the autoscaler writes
//!    another value, by an update, our ownership ends, and it is the first row.
//! 3. **Nothing stale is written.** Whatever is sent that the desired object does not say, and whatever of ours is given up, is
//!    guarded by the `metadata.resourceVersion` that it was read at. Whoever writes in between makes the API server answer 409,
//!    and it is read and computed again.
//! 4. **What fails writes nothing.** A retention that fails, or that answers with another object, or without a field that is both
//!    desired and there, is an error that names the object, the field and whoever answered.
//! 5. **Who is not asked costs nothing.** An object for which nobody answers, and one of which nothing is kept, goes the way that it
//!    would without a retention. Who owns what is read from the API server, since the index does not hold it: only before a write,
//!    and only if something is kept or anybody else writes more of the object than its status.
//!
//! A list is followed item by item where the managed fields say by which keys its items are told apart; any other list, and an
//! object that is one value to the API server (`mapType=atomic`, such as the selector of a Service), is kept or sent as a whole.
//!
//! What sends API traffic to webhooks ([`Applier::ensure_armed`](super::Applier::ensure_armed)) is not asked about: what calls whom
//! is proven, and changes by one write.
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

/// What a [`Retention`] answers, after a while: the desired object with what must be kept.
pub type Retaining<'a> = BoxFuture<'a, Result<Option<Value>, BoxError>>;

/// Knows what an apply must keep of what others have set in an object.
pub trait Retention: Send + Sync {
    /// Who answers for objects such as `desired`, for example `ResourceInterpreterCustomization clonesets`; `None` where nobody
    /// does. It is asked at every look at every object, so it has to be cheap. Of an object that the index does not hold whole (large
    /// ones, ConfigMaps, CustomResourceDefinitions) each look costs a request where somebody answers.
    fn answered_by(&self, desired: &Value) -> Option<String>;

    /// `desired` with what must be kept of `observed`; `None` where nobody answers after all.
    ///
    /// `desired` is what is to be applied, with the marks of its owner and without status; `observed` is what is there, of whose
    /// `metadata.managedFields` the owned fields may be missing. The answer may differ from `desired` in what the bundle or the
    /// cluster sets; marks, status, and what of the metadata only the API server says do not count. For the same objects it is the
    /// same answer.
    ///
    /// # Errors
    ///
    /// Why it cannot be told what must be kept: nothing is written then.
    fn retain<'a>(&'a self, desired: &'a Value, observed: &'a Value) -> Retaining<'a>;
}
