//! Admission webhooks: which are called for a request, in which order, and what their answers do.
//!
//! Mutating webhooks are called one after the other, ordered by the configuration's name and then by their place in
//! it; those with `reinvocationPolicy: IfNeeded` once more if a later one changed the object. Then all validating
//! ones are called side by side.

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
