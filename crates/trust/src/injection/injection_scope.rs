//! The places of targets that an injection writes.

use std::sync::Arc;

use serde_json::Value;

use super::{
    holder::{CalledServer, Holder},
    kinds::{BundleReader, TargetKinds},
    request::{CaRequests, CaSources},
};
use crate::pki::DnsNames;

/// The places of targets that an injection writes: they request one of its sources and call one of its
/// servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InjectionScope {
    /// The requested sources, one of which a place must request; empty for no restriction.
    requested: Vec<CaSources>,
    /// The servers, one of which a place must call; `None` for no restriction.
    names: Option<DnsNames>,
    /// The kinds that have CA bundles, and their places.
    kinds: Arc<TargetKinds>,
}

impl InjectionScope {
    /// Returns the scope with every place of any target.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Sets the kinds of targets.
    #[must_use]
    pub fn with_kinds(self, kinds: Arc<TargetKinds>) -> Self {
        Self { kinds, ..self }
    }

    /// Returns the scope with the places that request one of these sets of sources.
    pub fn requesting(sources: impl IntoIterator<Item = CaSources>) -> Self {
        Self {
            requested: sources.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Restricts the scope to places that call a server with one of these names, or name none. Places that
    /// call other servers could no longer verify them.
    #[must_use]
    pub fn with_servers(self, names: DnsNames) -> Self {
        Self {
            names: Some(names),
            ..self
        }
    }

    /// Returns the places of `target` in scope. A target with invalid annotations counts as requesting
    /// everything.
    pub fn holders<'t>(&'t self, target: &'t Value) -> impl Iterator<Item = Holder<'t>> {
        let kind = self.kinds.kind_of(target);
        let holders = kind.map(|kind| kind.holders(target)).unwrap_or_default();
        let requests = match self.requested.is_empty() {
            true => None,
            false => CaRequests::from_object(target, &self.kinds).ok(),
        };
        holders.into_iter().filter(move |holder| {
            self.is_server_in_scope(holder) && self.is_requested(holder, requests.as_ref())
        })
    }

    fn is_server_in_scope(&self, holder: &Holder<'_>) -> bool {
        match (&self.names, &holder.server) {
            (Some(names), CalledServer::Host(host)) => names.match_host(host),
            (Some(_), CalledServer::Unreadable) => false,
            (Some(_), CalledServer::Unknown) | (None, _) => true,
        }
    }

    /// Returns who reads the CA bundles of `target`.
    pub fn reader(&self, target: &Value) -> BundleReader {
        let kind = self.kinds.kind_of(target);
        kind.map(|kind| kind.reader).unwrap_or_default()
    }

    pub(crate) fn kinds(&self) -> &TargetKinds {
        &self.kinds
    }

    fn is_requested(&self, holder: &Holder<'_>, requests: Option<&CaRequests>) -> bool {
        requests.is_none_or(|requests| self.requested.contains(requests.for_webhook(holder.entry)))
    }
}
