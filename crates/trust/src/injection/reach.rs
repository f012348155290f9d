//! Which places of a target an injection is for.

use serde_json::Value;

use super::{
    holder::Holder,
    kinds::TargetKind,
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
}

// === impl Reach ===

impl Reach {
    /// Every place of any target.
    pub fn everything() -> Self {
        Self::default()
    }

    /// The places that ask for one of these sets of sources.
    pub fn asking(asked: impl IntoIterator<Item = CaSources>) -> Self {
        Self {
            asked: asked.into_iter().collect(),
            names: None,
        }
    }

    /// Of these places those that call a server of one of these names: what calls others could not verify them any more.
    #[must_use]
    pub fn calling(self, names: DnsNames) -> Self {
        Self {
            names: Some(names),
            ..self
        }
    }

    /// The places of `target`, as they are. Where it is not clear what the target asks for, it asks for everything.
    pub fn holders<'t>(&self, target: &'t Value) -> impl Iterator<Item = Holder<'t>> {
        let kind = TargetKind::of(target);
        let holders = kind.map(|kind| kind.holders(target)).unwrap_or_default();
        let requests = match self.asked.is_empty() {
            true => None,
            false => CaRequests::of(target).ok(),
        };
        holders
            .into_iter()
            .filter(move |holder| self.is_called(holder) && self.is_asked(holder, requests.as_ref()))
    }

    fn is_called(&self, holder: &Holder<'_>) -> bool {
        match (&self.names, &holder.host) {
            (Some(names), Some(host)) => names.cover(host),
            (Some(_), None) => false,
            (None, _) => true,
        }
    }

    fn is_asked(&self, holder: &Holder<'_>, requests: Option<&CaRequests>) -> bool {
        requests.is_none_or(|requests| self.asked.contains(requests.of_entry(holder.entry)))
    }
}
