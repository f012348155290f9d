//! What lags behind: API servers behind targets, and pods behind the Secret.

use windlass_object::{InCluster, ObjectKey};

use crate::rotation::{Chain, Contested, ObservedEndpoint, Target, TrustSet};

/// How often a target is repaired before it is fought over; more makes no difference.
const FOUGHT_OVER: u64 = 2;

/// A target, and the API servers that read it late.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct WebhookConfiguration {
    pub(super) bundle: Option<TrustSet>,
    /// What the slowest API server goes by.
    pub(super) effective: Option<TrustSet>,
    /// What a tool that is behind would write again.
    pub(super) before: Option<TrustSet>,
    /// What a tool that never learns writes whenever it is not there.
    pub(super) stale: Option<TrustSet>,
    /// What the operator gave it last, and how often again.
    last_written: Option<TrustSet>,
    repairs: u64,
    pub(super) refuses: bool,
    pub(super) refused: bool,
    /// Whether it is read as a file.
    pub(super) is_file: bool,
    /// Whether it is in a namespace, where tenants write.
    pub(super) is_namespaced: bool,
}

/// A server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pod {
    pub(super) chain: Option<Chain>,
    pub(super) stage: Stage,
    /// Whether the operator can dial it.
    pub(super) observable: bool,
    /// Another port of it, whose process reads the Secret by itself.
    pub(super) second: Option<Port>,
}

/// One of the ports of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Port {
    pub(super) chain: Option<Chain>,
    /// Whether the operator can dial it.
    pub(super) observable: bool,
}

/// How far a pod has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// It was given the Secret, and is not among the endpoints yet, for however long.
    Created,
    /// It is among the endpoints, and not ready.
    Starting,
    /// It gets requests.
    Ready,
}

// === impl WebhookConfiguration ===

impl WebhookConfiguration {
    /// One that carries nothing yet, and that nobody was seen to write.
    pub(super) fn new(is_namespaced: bool) -> Self {
        Self {
            is_namespaced,
            ..Self::default()
        }
    }

    /// The operator writes it.
    pub(super) fn write(&mut self, bundle: &TrustSet) {
        self.refused = self.refuses;
        if self.refuses || self.bundle.as_ref() == Some(bundle) {
            return;
        }
        let is_repair = self.last_written.as_ref() == Some(bundle);
        self.repairs = (self.repairs + u64::from(is_repair)).min(FOUGHT_OVER);
        self.last_written = Some(bundle.clone());
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
                cluster: InCluster::Local,
                api_version: "v1".to_owned(),
                kind: "Webhook".to_owned(),
                namespace: self.is_namespaced.then(|| "tenant".to_owned()),
                name: index.to_string(),
            },
            bundle: self.bundle.clone(),
            last_written: self.last_written.clone(),
            refused: self.refused.then(|| "forbidden".to_owned()),
            contested: (self.repairs == FOUGHT_OVER).then_some(Contested {
                by: None,
                repairs: self.repairs,
                wait: None,
            }),
            is_file: self.is_file,
        }
    }
}

// === impl Pod ===

impl Pod {
    /// With one port.
    pub(super) fn new(chain: Option<Chain>, stage: Stage, observable: bool) -> Self {
        Self {
            chain,
            stage,
            observable,
            second: None,
        }
    }

    fn ports(self) -> impl Iterator<Item = Port> {
        let first = Port {
            chain: self.chain,
            observable: self.observable,
        };
        [first].into_iter().chain(self.second)
    }

    /// What is served on all of its ports.
    pub(super) fn chains(self) -> impl Iterator<Item = Chain> {
        self.ports().filter_map(|port| port.chain)
    }

    pub(super) fn observe(self, index: usize) -> ObservedEndpoint {
        let ready = self.stage == Stage::Ready;
        let dialled = self.ports().filter(|port| ready && port.observable);
        let chains: Vec<_> = dialled.filter_map(|port| port.chain).collect();
        let is_unseen = chains.len() < self.ports().count();
        ObservedEndpoint {
            name: index.to_string(),
            ready,
            created: None,
            chains,
            unobservable: is_unseen.then(|| "connection refused".to_owned()),
        }
    }
}
