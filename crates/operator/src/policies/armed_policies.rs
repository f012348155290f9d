//! The policies that the webhook configurations send requests to, and why others are still waiting.

use std::{collections::HashMap, sync::Arc};

use tokio::sync::watch;
use windlass_object::ObjectKey;

use super::snapshot::{PolicySnapshot, PolicyVersion};

/// The policies that the webhook configurations send requests to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ArmedPolicies {
    policies: HashMap<ObjectKey, PolicyVersion>,
    /// Why the other policies are still waiting.
    pub(super) problem: Option<String>,
}

/// The latest [`ArmedPolicies`]; `None` before the leader has compared the configurations.
#[derive(Clone)]
pub(super) struct ArmingReport(watch::Sender<Option<Arc<ArmedPolicies>>>);

impl ArmedPolicies {
    pub(super) fn all(snapshot: &PolicySnapshot) -> Self {
        let policies = snapshot.policies.iter();
        Self {
            policies: policies
                .map(|(key, state)| (key.clone(), state.version.clone()))
                .collect(),
            problem: None,
        }
    }

    /// Returns the same policies, with the problem that keeps others waiting.
    pub(super) fn with_problem(&self, problem: String) -> Self {
        Self {
            policies: self.policies.clone(),
            problem: Some(problem),
        }
    }

    pub(super) fn contains(&self, key: &ObjectKey, version: &PolicyVersion) -> bool {
        self.policies.get(key) == Some(version)
    }
}

impl ArmingReport {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    pub(super) fn last(&self) -> Option<Arc<ArmedPolicies>> {
        self.0.borrow().clone()
    }

    pub(super) fn changes(&self) -> watch::Receiver<Option<Arc<ArmedPolicies>>> {
        self.0.subscribe()
    }

    /// Publishes `armed` if it differs from the last value.
    pub(super) fn publish(&self, armed: ArmedPolicies) {
        self.0.send_if_modified(|last| {
            let is_news = last.as_deref() != Some(&armed);
            if is_news {
                *last = Some(Arc::new(armed));
            }
            is_news
        });
    }
}
