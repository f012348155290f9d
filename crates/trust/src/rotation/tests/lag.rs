//! Lag of API servers after targets, and of pods after the Secret.

use windlass_object::{InCluster, ObjectKey};

use crate::rotation::{Chain, Contested, ObservedEndpoint, Target, TrustSet};

/// After how many repairs a target counts as contested; more repairs make no difference.
const FOUGHT_OVER: u64 = 2;

/// A target, and the API servers that read it with delay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct WebhookConfiguration {
    pub(super) bundle: Option<TrustSet>,
    /// The bundle that the slowest API server uses.
    pub(super) effective: Option<TrustSet>,
    /// The bundle that an outdated tool would write.
    pub(super) before: Option<TrustSet>,
    /// The bundle that a misconfigured tool always restores.
    pub(super) stale: Option<TrustSet>,
    /// What the operator last wrote, and how many times in a row.
    last_written: Option<TrustSet>,
    repairs: u64,
    pub(super) refuses: bool,
    pub(super) refused: bool,
    /// Whether clients read the bundle from a file.
    pub(super) is_file: bool,
    /// Whether the target is namespaced, so that tenants write it.
    pub(super) is_namespaced: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pod {
    pub(super) chain: Option<Chain>,
    pub(super) stage: Stage,
    /// Whether the operator can reach the port.
    pub(super) observable: bool,
    /// Another port, whose process reloads the Secret independently.
    pub(super) second: Option<Port>,
}

/// A port of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Port {
    pub(super) chain: Option<Chain>,
    /// Whether the operator can reach the port.
    pub(super) observable: bool,
}

/// How far a pod has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// The pod has mounted the Secret but is not an endpoint yet.
    Created,
    /// The pod is an endpoint but not ready.
    Starting,
    /// The pod is ready and receives requests.
    Ready,
}

impl WebhookConfiguration {
    /// A target without a bundle that nothing has written yet.
    pub(super) fn new(is_namespaced: bool) -> Self {
        Self {
            is_namespaced,
            ..Self::default()
        }
    }

    /// Writes the bundle as the operator does.
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

    /// Lets the API servers catch up.
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

impl Pod {
    /// A pod with one port.
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

    /// Returns the chains on all of its ports.
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
