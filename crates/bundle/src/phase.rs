//! The phases of an install: each completes before the next begins.

/// A group of objects that are applied together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// ServiceAccounts, roles and their bindings.
    Identity,
    /// ConfigMaps and all other objects of the bundle.
    Configuration,
    /// Services.
    Services,
    /// ServingCertificates: before the CRDs, so that new CRDs trust their webhook from the start.
    Certificates,
    /// CustomResourceDefinitions.
    Crds,
    /// Deployments.
    Deployments,
    /// Objects that send requests to servers of the bundle: webhook configurations, ExtensionConfigs and
    /// APIServices. Armed after proof.
    Callers,
}

impl Phase {
    /// Every phase, in order.
    pub const ALL: [Self; 7] = [
        Self::Identity,
        Self::Configuration,
        Self::Services,
        Self::Certificates,
        Self::Crds,
        Self::Deployments,
        Self::Callers,
    ];
}
