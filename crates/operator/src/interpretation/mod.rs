//! What the resource interpreter says of objects of bundles: whether they are healthy, what they depend on, and what of them is kept.
//!
//! Customizations and webhooks are those of the cluster; what they do not say is known of Kubernetes' own kinds.

mod asked_webhooks;
mod learned;
mod look_times;
mod object_interpretation;
mod own_servers;
mod retaining;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod webhook_memory;

pub(crate) use self::{learned::INTERPRETATION_KINDS, object_interpretation::Interpretation};
