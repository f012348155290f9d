//! What to watch.

use kube::runtime::watcher;

use crate::kind::Kind;

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

    pub(crate) fn config(&self) -> watcher::Config {
        match &self.selector {
            Selector::All => watcher::Config::default(),
            Selector::Label(labels) => watcher::Config::default().labels(labels),
            Selector::Name(name) => watcher::Config::default().fields(&format!("metadata.name={name}")),
        }
    }
}
