//! The requests without which a bundle does not come up, and which of its own webhooks would be asked about them.

mod blocking;
mod known_labels;
mod needed;
mod request;

pub(crate) use blocking::{blocked, blocking_message};
pub(crate) use request::{Request, WatchedNamespaces};
