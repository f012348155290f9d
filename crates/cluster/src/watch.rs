//! What to watch.

use std::fmt;

use kube::runtime::watcher;
use serde_json::Value;
use windlass_object::{InCluster, ObjectKey};
use windlass_trust::injection::{CaRequests, KINDS, TargetKind, TargetKinds, has_injected_bundle};

use crate::{
    kind::{Kind, kinds},
    page::PAGE_SIZE,
    trim::is_bare,
};

/// What to watch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Watch {
    /// The kind.
    pub kind: Kind,
    /// One namespace, or all of them.
    pub namespace: Option<String>,
    /// Which objects.
    pub selector: Selector,
}

/// Which objects of a kind are watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Selector {
    /// All of them.
    All,
    /// Those that match a label selector.
    Label(String),
    /// The one with this name.
    Name(String),
    /// Of all, those that ask for a trust bundle, or carry one that was injected: no others are kept.
    Targets,
}

/// A watch that has not seen all there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnlistedWatch {
    /// Which one.
    pub watch: Watch,
    /// What kept the API server from listing it last; `None` while it has not answered.
    pub problem: Option<String>,
}

/// The kinds without which nothing can be done: what we are asked for, who is called and who serves, and where we keep what we
/// know. All others bring only what needs them to a halt, be it that a conversion webhook of somebody else is broken for days,
/// or that our role was trimmed.
const ESSENTIAL_KINDS: [Kind; 14] = [
    kinds::BUNDLE_DEPLOYMENT,
    kinds::CLUSTER_OVERRIDE_POLICY,
    kinds::CLUSTER_VALIDATE_POLICY,
    kinds::CONFIG_MAP,
    kinds::CUSTOM_RESOURCE_DEFINITION,
    kinds::DEPLOYMENT,
    kinds::ENDPOINT_SLICE,
    kinds::MUTATING_WEBHOOK_CONFIGURATION,
    kinds::OVERRIDE_POLICY,
    kinds::POD,
    kinds::SECRET,
    kinds::SERVICE,
    kinds::SERVING_CERTIFICATE,
    kinds::VALIDATING_WEBHOOK_CONFIGURATION,
];

/// After how many seconds the API server ends a watch, which then goes on. kube's watcher takes one for dead that is silent for
/// 5 s more. An API server sends bookmarks only each minute, and one before the end: that alone would be noticed later.
const LONGEST: u32 = 40;

// === impl Watch ===

impl Watch {
    /// Every object of a kind.
    pub fn all(kind: Kind) -> Self {
        Self {
            kind,
            namespace: None,
            selector: Selector::All,
        }
    }

    /// Only in `namespace`.
    #[must_use]
    pub fn within(self, namespace: &str) -> Self {
        Self {
            namespace: Some(namespace.to_owned()),
            ..self
        }
    }

    /// Only those that `selector` takes.
    #[must_use]
    pub fn selected(self, selector: Selector) -> Self {
        Self { selector, ..self }
    }

    /// What sees the targets of a kind, in each version that may be watched.
    pub fn for_target(target: &TargetKind) -> impl Iterator<Item = Self> {
        let selector = match target.is_common() {
            true => Selector::Targets,
            false => Selector::All,
        };
        Kind::versions_of(target).map(move |kind| Self::all(kind).selected(selector.clone()))
    }

    /// What sees the targets of the remote cluster: those of kinds that carry CA bundles by themselves.
    pub fn for_remote_targets() -> impl Iterator<Item = Self> {
        KINDS.iter().flat_map(Self::for_target).map(|watch| Self {
            kind: watch.kind.in_cluster(InCluster::Remote),
            ..watch
        })
    }

    /// Names an object that it has seen; `None` when that lacks an apiVersion, a kind or a name.
    pub(crate) fn key(&self, object: &Value) -> Option<ObjectKey> {
        Some(ObjectKey::from_object(object)?.in_cluster(self.kind.cluster))
    }

    /// Whether it sees every object of its kind that matters.
    pub(crate) fn sees_all(&self) -> bool {
        self.namespace.is_none() && matches!(self.selector, Selector::All | Selector::Targets)
    }

    /// Whether nothing can be done without it.
    pub(crate) fn is_essential(&self) -> bool {
        // One definition matters to who wants its kind.
        let is_of_one =
            self.kind == kinds::CUSTOM_RESOURCE_DEFINITION && matches!(self.selector, Selector::Name(_));
        ESSENTIAL_KINDS.contains(&self.kind) && self.selector != Selector::Targets && !is_of_one
    }

    /// Whether an object is kept that the API server has sent, and that [`trim`](crate::trim::trim) has made smaller.
    pub(crate) fn keeps(&self, object: &Value, kinds: &TargetKinds) -> bool {
        let is_target = || CaRequests::are_present(object, kinds) || has_injected_bundle(object, kinds);
        match self.selector {
            Selector::Targets => is_target() && !is_bare(object),
            Selector::All | Selector::Label(_) | Selector::Name(_) => true,
        }
    }

    /// How kube's watcher follows it, with a list that comes object by object or in pages.
    pub(crate) fn config(&self, is_streamed: bool) -> watcher::Config {
        let config = watcher::Config::default().timeout(LONGEST);
        let config = match is_streamed {
            true => config.streaming_lists(),
            false => config.page_size(PAGE_SIZE),
        };
        match &self.selector {
            Selector::All | Selector::Targets => config,
            Selector::Label(labels) => config.labels(labels),
            Selector::Name(name) => config.fields(&format!("metadata.name={name}")),
        }
    }
}

impl fmt::Display for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, " in {namespace}")?;
        }
        match &self.selector {
            Selector::All => Ok(()),
            Selector::Label(labels) => write!(f, " with {labels}"),
            Selector::Name(name) => write!(f, " named {name}"),
            Selector::Targets => f.write_str(" that ask for a trust bundle"),
        }
    }
}

impl fmt::Display for UnlistedWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = self.problem.as_deref().unwrap_or("no answer yet");
        write!(f, "{}: {problem}", self.watch)
    }
}

#[cfg(test)]
mod tests {
    use windlass_trust::injection::KINDS;

    use super::*;

    #[test]
    fn only_what_everything_needs_is_essential() {
        let essential = |kind: Kind| Watch::all(kind).is_essential();
        for kind in [
            kinds::BUNDLE_DEPLOYMENT,
            kinds::SECRET,
            kinds::DEPLOYMENT,
            kinds::CUSTOM_RESOURCE_DEFINITION,
            kinds::ENDPOINT_SLICE,
            kinds::SERVING_CERTIFICATE,
        ] {
            assert!(essential(kind.clone()), "{kind}");
        }
        let definition = Watch::all(kinds::CUSTOM_RESOURCE_DEFINITION);
        assert!(!definition.selected(Selector::Name("a".to_owned())).is_essential());
        for (api_version, kind) in [
            ("runtime.cluster.x-k8s.io/v1beta2", "ExtensionConfig"),
            ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler"),
            ("monitoring.coreos.com/v1", "ServiceMonitor"),
            ("networking.k8s.io/v1", "NetworkPolicy"),
            ("policy/v1", "PodDisruptionBudget"),
            ("scheduling.k8s.io/v1", "PriorityClass"),
            ("rbac.authorization.k8s.io/v1", "Role"),
            ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
            ("apiregistration.k8s.io/v1", "APIService"),
            ("windlass.dev/v1alpha1", "InjectionTarget"),
            ("v1", "ServiceAccount"),
            ("v1", "Namespace"),
        ] {
            assert!(!essential(Kind::new(api_version, kind)), "{kind}");
        }
        let dispensable = KINDS
            .iter()
            .map(Kind::from)
            .filter(|kind| !essential(kind.clone()));
        assert!(dispensable.count() > 0);
    }
}
