//! The requests that a bundle needs to start, and those that its own webhooks intercept.

mod blocking;
mod known_labels;
mod needed;
mod request;

pub(crate) use blocking::{blocked, blocking_message};
pub(crate) use request::{Request, WatchedNamespaces};
