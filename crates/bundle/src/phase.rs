//! The phases of an install: each is complete before the next begins.

/// What is applied together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// ServiceAccounts, roles and their bindings.
    Identity,
    /// ConfigMaps and everything else that the bundle brings along.
    Configuration,
    /// Services.
    Services,
    /// ServingCertificates: before the CRDs, so that these are born with trust in their webhook.
    Certificates,
    /// CustomResourceDefinitions.
    Crds,
    /// Deployments.
    Deployments,
    /// What sends traffic to servers of the bundle: webhook configurations, ExtensionConfigs and APIServices. Armed after proof.
    Callers,
}

// === impl Phase ===

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
