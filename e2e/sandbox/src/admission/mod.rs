//! Admission webhooks: which are called for a request, in which order, and how their responses are applied.
//!
//! Mutating webhooks are called sequentially, ordered by the configuration's name and then by their position
//! in it. Those with `reinvocationPolicy: IfNeeded` are called again if a later one changed the object. Then
//! all validating webhooks are called in parallel.

mod call;
mod conditions;
mod convert;
mod hook;
mod matching;
mod request;
mod review;
mod selector;

pub use conditions::problems as condition_problems;
pub use convert::Convert;
pub use request::{RequestedResource, ReviewRequest, ServedVersion};
pub use review::{Admitted, mutate, validate};
pub use selector::matches as selector_matches;

#[cfg(test)]
mod tests;
