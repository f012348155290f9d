//! A Deployment as an install applies it at this moment.

use serde_json::Value;

use super::{revisions::Revisions, rollout_status::replica_failure};
use crate::install::traffic::{is_held, surge};

/// A Deployment as it is to be now.
pub(super) struct Rollout {
    /// What the bundle says of it.
    pub(super) desired: Value,
    /// What is applied.
    pub(super) body: Value,
    /// Whether webhooks call its pods.
    pub(super) is_serving: bool,
}

impl Rollout {
    pub(super) fn is_held(&self) -> bool {
        is_held(&self.body)
    }

    /// Whether its new pods are ready: all of them, or all of these for which there is room. A quota must leave room for as many
    /// as the bundle's own strategy adds.
    pub(super) fn has_new_pods(&self, live: &Value, revisions: &Revisions) -> bool {
        revisions.have_settled(surge(live))
            || (replica_failure(live).is_some() && revisions.have_settled(surge(&self.desired).max(1)))
    }
}
