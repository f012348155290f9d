//! What lags behind: API servers behind targets, and pods behind the Secret.

use windlass_object::ObjectKey;

use crate::rotation::{Chain, Handshake, ObservedEndpoint, Target, TrustSet};

/// A target, and the API servers that read it late.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct WebhookConfiguration {
    pub(super) bundle: Option<TrustSet>,
    /// What the slowest API server goes by.
    pub(super) effective: Option<TrustSet>,
    /// What a tool that is behind would write again.
    pub(super) before: Option<TrustSet>,
    pub(super) refuses: bool,
    pub(super) refused: bool,
}

/// A server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pod {
    pub(super) chain: Option<Chain>,
    pub(super) stage: Stage,
    /// Whether the operator can dial it.
    pub(super) observable: bool,
    /// For how many seconds the Secret has held something else than it serves.
    pub(super) behind: i64,
}

/// How far a pod has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// It was given the Secret, and is not among the endpoints.
    Created,
    /// It is among the endpoints, and not ready.
    Starting,
    /// It gets requests.
    Ready,
}

// === impl WebhookConfiguration ===

impl WebhookConfiguration {
    /// Somebody writes it.
    pub(super) fn write(&mut self, bundle: &TrustSet) {
        self.refused = self.refuses;
        if self.refuses || self.bundle.as_ref() == Some(bundle) {
            return;
        }
        self.before = self
            .bundle
            .replace(bundle.clone())
            .or_else(|| Some(bundle.clone()));
    }

    /// The API servers come to know it.
    pub(super) fn propagate(&mut self) {
        self.effective.clone_from(&self.bundle);
    }

    pub(super) fn observe(&self, index: u8) -> Target {
        Target {
            id: ObjectKey {
                api_version: "v1".to_owned(),
                kind: "Webhook".to_owned(),
                namespace: None,
                name: index.to_string(),
            },
            bundle: self.bundle.clone(),
            refused: self.refused.then(|| "forbidden".to_owned()),
            contested: None,
        }
    }
}

// === impl Pod ===

impl Pod {
    pub(super) fn is_behind(&self, served: Option<&Chain>) -> bool {
        served.is_some_and(|served| self.chain.map(|chain| chain.leaf) != Some(served.leaf))
    }

    pub(super) fn observe(&self, index: usize) -> ObservedEndpoint {
        let is_dialled = self.observable && self.stage == Stage::Ready;
        ObservedEndpoint {
            name: index.to_string(),
            ready: self.stage == Stage::Ready,
            served: match self.chain {
                Some(chain) if is_dialled => Handshake::Chain(chain),
                _ => Handshake::Unobservable("connection refused".to_owned()),
            },
        }
    }
}
