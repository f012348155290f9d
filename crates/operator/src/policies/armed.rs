//! What is known of arming: which policies requests are sent to, and what keeps the others waiting.

use std::{collections::HashMap, sync::Arc};

use tokio::sync::watch;
use windlass_object::ObjectKey;

use super::snapshot::{PolicySnapshot, PolicyVersion};

/// Which policies requests are sent to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Armed {
    policies: HashMap<ObjectKey, PolicyVersion>,
    /// What keeps others waiting.
    pub(super) problem: Option<String>,
}

/// The last word on it; none before the leader has looked.
#[derive(Clone)]
pub(super) struct ArmedReport(watch::Sender<Option<Arc<Armed>>>);

// === impl Armed ===

impl Armed {
    /// All of these policies.
    pub(super) fn all(snapshot: &PolicySnapshot) -> Self {
        let policies = snapshot.policies.iter();
        Self {
            policies: policies
                .map(|(key, state)| (key.clone(), state.version.clone()))
                .collect(),
            problem: None,
        }
    }

    /// Those that were, as far as they are still there, while something keeps others waiting.
    pub(super) fn waiting(&self, problem: String) -> Self {
        Self {
            policies: self.policies.clone(),
            problem: Some(problem),
        }
    }

    pub(super) fn has(&self, key: &ObjectKey, version: &PolicyVersion) -> bool {
        self.policies.get(key) == Some(version)
    }
}

// === impl ArmedReport ===

impl ArmedReport {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    pub(super) fn last(&self) -> Option<Arc<Armed>> {
        self.0.borrow().clone()
    }

    pub(super) fn changes(&self) -> watch::Receiver<Option<Arc<Armed>>> {
        self.0.subscribe()
    }

    /// Says it, if it is news.
    pub(super) fn say(&self, armed: Armed) {
        self.0.send_if_modified(|last| {
            let is_news = last.as_deref() != Some(&armed);
            if is_news {
                *last = Some(Arc::new(armed));
            }
            is_news
        });
    }
}
