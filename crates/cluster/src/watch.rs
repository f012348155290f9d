//! Definitions of watches.

use std::fmt;

use kube::runtime::watcher;
use serde_json::Value;
use windlass_object::{InCluster, ObjectKey};
use windlass_trust::injection::{CaRequests, KINDS, TargetKind, TargetKinds, has_injected_bundle};

use crate::{
    kind::{Kind, kinds},
    page::PAGE_SIZE,
    trim::is_name_only,
};

/// A kind to watch, and which of its objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Watch {
    /// The watched kind.
    pub kind: Kind,
    /// The namespace; `None` for all.
    pub namespace: Option<String>,
    /// The watched objects.
    pub selector: Selector,
}

/// The watched objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Selector {
    /// All objects.
    All,
    /// Objects that match a label selector.
    Label(String),
    /// The object with this name.
    Name(String),
    /// All objects; only those that request a trust bundle, or have an injected one, are kept.
    Targets,
}

/// A watch without a complete list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnlistedWatch {
    /// The watch without a complete list.
    pub watch: Watch,
    /// Why the last list failed; `None` while there is no response.
    pub problem: Option<String>,
}

/// Kinds that all controllers need: instructions to Windlass, callers and servers, and Windlass's own state.
/// Any other kind that cannot be listed, because its conversion webhook is broken or a permission is missing,
/// stops only the controllers that need it.
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

/// The seconds after which the API server ends a watch, which then resumes. kube's watcher considers a watch
/// dead that is silent for 5 s longer. Without a timeout, a dead watch would be detected later: an API server
/// sends bookmarks only every minute, and one before the end.
const LONGEST: u32 = 40;

impl Watch {
    /// Watches every object of a kind.
    pub fn all(kind: Kind) -> Self {
        Self {
            kind,
            namespace: None,
            selector: Selector::All,
        }
    }

    /// Restricts the watch to `namespace`.
    #[must_use]
    pub fn within(self, namespace: &str) -> Self {
        Self {
            namespace: Some(namespace.to_owned()),
            ..self
        }
    }

    /// Restricts the watch to the objects of `selector`.
    #[must_use]
    pub fn selected(self, selector: Selector) -> Self {
        Self { selector, ..self }
    }

    /// Returns watches of the targets of a kind, in each version that may be watched.
    pub fn for_target(target: &TargetKind) -> impl Iterator<Item = Self> {
        let selector = match target.is_common() {
            true => Selector::Targets,
            false => Selector::All,
        };
        Kind::versions_of(target).map(move |kind| Self::all(kind).selected(selector.clone()))
    }

    /// Returns watches of the targets of the remote cluster: of kinds with built-in CA bundles.
    pub fn for_remote_targets() -> impl Iterator<Item = Self> {
        KINDS.iter().flat_map(Self::for_target).map(|watch| Self {
            kind: watch.kind.in_cluster(InCluster::Remote),
            ..watch
        })
    }

    /// Returns the key of a watched object; `None` if that lacks an apiVersion, a kind or a name.
    pub(crate) fn key(&self, object: &Value) -> Option<ObjectKey> {
        Some(ObjectKey::from_object(object)?.in_cluster(self.kind.cluster))
    }

    /// Reports whether the watch includes every relevant object of its kind.
    pub(crate) fn sees_all(&self) -> bool {
        self.namespace.is_none() && matches!(self.selector, Selector::All | Selector::Targets)
    }

    /// Reports whether all controllers need the watch.
    pub(crate) fn is_essential(&self) -> bool {
        // A single CustomResourceDefinition matters only to controllers that need its kind.
        let is_of_one =
            self.kind == kinds::CUSTOM_RESOURCE_DEFINITION && matches!(self.selector, Selector::Name(_));
        ESSENTIAL_KINDS.contains(&self.kind) && self.selector != Selector::Targets && !is_of_one
    }

    /// Reports whether the index keeps an object, which [`trim`](crate::trim::trim) has trimmed.
    pub(crate) fn keeps(&self, object: &Value, kinds: &TargetKinds) -> bool {
        let is_target = || CaRequests::are_present(object, kinds) || has_injected_bundle(object, kinds);
        match self.selector {
            Selector::Targets => is_target() && !is_name_only(object),
            Selector::All | Selector::Label(_) | Selector::Name(_) => true,
        }
    }

    /// Returns the configuration of kube's watcher, with a streamed or a paginated list.
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
            Selector::Targets => f.write_str(" that request a trust bundle"),
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
    fn only_kinds_that_all_controllers_need_are_essential() {
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
