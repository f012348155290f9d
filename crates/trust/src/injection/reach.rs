//! Which places of a target an injection is for.

use std::sync::Arc;

use serde_json::Value;

use super::{
    holder::{CalledServer, Holder},
    kinds::{BundleReader, TargetKinds},
    request::{CaRequests, CaSources},
};
use crate::pki::DnsNames;

/// Which places of targets an injection is for: those that ask for it, and call who can present what it is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// What they ask for: one of these, if there are any.
    asked: Vec<CaSources>,
    /// What they call: a server of one of these names, if there are any.
    names: Option<DnsNames>,
    /// The kinds that have places.
    kinds: Arc<TargetKinds>,
}

// === impl Reach ===

impl Reach {
    /// Every place of any target.
    pub fn everything() -> Self {
        Self::default()
    }

    /// The same in objects of these kinds.
    #[must_use]
    pub fn within(self, kinds: Arc<TargetKinds>) -> Self {
        Self { kinds, ..self }
    }

    /// The places that ask for one of these sets of sources.
    pub fn asking(asked: impl IntoIterator<Item = CaSources>) -> Self {
        Self {
            asked: asked.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Of these places those that call a server of one of these names, or say of none: what calls others could not verify them any
    /// more.
    #[must_use]
    pub fn calling(self, names: DnsNames) -> Self {
        Self {
            names: Some(names),
            ..self
        }
    }

    /// The places of `target`, as they are. Where it is not clear what the target asks for, it asks for everything.
    pub fn holders<'t>(&'t self, target: &'t Value) -> impl Iterator<Item = Holder<'t>> {
        let kind = self.kinds.of(target);
        let holders = kind.map(|kind| kind.holders(target)).unwrap_or_default();
        let requests = match self.asked.is_empty() {
            true => None,
            false => CaRequests::of(target, &self.kinds).ok(),
        };
        holders
            .into_iter()
            .filter(move |holder| self.is_called(holder) && self.is_asked(holder, requests.as_ref()))
    }

    fn is_called(&self, holder: &Holder<'_>) -> bool {
        match (&self.names, &holder.server) {
            (Some(names), CalledServer::Host(host)) => names.cover(host),
            (Some(_), CalledServer::Unreadable) => false,
            (Some(_), CalledServer::Unsaid) | (None, _) => true,
        }
    }

    /// Who reads what `target` carries.
    pub fn reader(&self, target: &Value) -> BundleReader {
        let kind = self.kinds.of(target);
        kind.map(|kind| kind.reader).unwrap_or_default()
    }

    /// The kinds that have places.
    pub(crate) fn kinds(&self) -> &TargetKinds {
        &self.kinds
    }

    fn is_asked(&self, holder: &Holder<'_>, requests: Option<&CaRequests>) -> bool {
        requests.is_none_or(|requests| self.asked.contains(requests.of_entry(holder.entry)))
    }
}
