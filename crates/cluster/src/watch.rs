//! What to watch.

use std::fmt;

use kube::runtime::watcher;

use crate::{kind::Kind, listing::PAGE};

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
}

/// A watch that has not seen all there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnlistedWatch {
    /// Which one.
    pub watch: Watch,
    /// What kept the API server from listing it last; `None` while it has not answered.
    pub problem: Option<String>,
}

/// The groups that every API server serves by itself, of kinds that are watched; and our own. Other groups are served by
/// somebody who may be broken for days: a conversion webhook of a CustomResourceDefinition, an aggregated API server.
const ESSENTIAL_GROUPS: [&str; 10] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "discovery.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
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

    /// Whether nothing can be done without it.
    pub(crate) fn is_essential(&self) -> bool {
        let (group, _) = self.kind.group_version();
        group == windlass_object::names::GROUP || ESSENTIAL_GROUPS.contains(&group)
    }

    /// How kube's watcher follows it, with a list that comes object by object or in pages.
    pub(crate) fn config(&self, is_streamed: bool) -> watcher::Config {
        let config = watcher::Config::default().timeout(LONGEST);
        let config = match is_streamed {
            true => config.streaming_lists(),
            false => config.page_size(PAGE),
        };
        match &self.selector {
            Selector::All => config,
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
    use crate::kind::kinds;

    #[test]
    fn what_the_api_server_serves_by_itself_is_essential_and_what_others_serve_is_not() {
        let essential = |kind: Kind| Watch::all(kind).is_essential();
        for kind in [
            kinds::SECRET,
            kinds::DEPLOYMENT,
            kinds::CUSTOM_RESOURCE_DEFINITION,
            kinds::API_SERVICE,
            kinds::ENDPOINT_SLICE,
            kinds::SERVING_CERTIFICATE,
        ] {
            assert!(essential(kind.clone()), "{kind}");
        }
        for (api_version, kind) in [
            ("runtime.cluster.x-k8s.io/v1beta2", "ExtensionConfig"),
            ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler"),
            ("monitoring.coreos.com/v1", "ServiceMonitor"),
        ] {
            assert!(!essential(Kind::new(api_version, kind)), "{kind}");
        }
        let served_by_others = KINDS
            .iter()
            .map(Kind::from)
            .filter(|kind| !essential(kind.clone()));
        assert!(served_by_others.count() > 0);
    }
}
