//! Interpretation of bundle objects: whether they are healthy, what they depend on, and which of their fields
//! an apply keeps.
//!
//! Customizations and webhooks of the cluster take precedence over the built-in rules for Kubernetes' own
//! kinds.

mod cached_webhooks;
mod object_interpretation;
mod own_servers;
mod retention;
mod rules;
#[cfg(test)]
pub(crate) mod scripted_webhooks;
#[cfg(test)]
mod tests;
mod wait_budget;
mod webhook_cache;

pub(crate) use self::{object_interpretation::Interpretation, rules::INTERPRETATION_KINDS};
