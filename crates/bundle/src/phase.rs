//! The phases of an install: each is complete before the next begins.

use crate::BundledKind;

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
    /// Webhook configurations: armed after proof.
    Admission,
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
        Self::Admission,
    ];

    /// The phase that applies objects of a kind: of what is rendered as it is here, of what a bundle brings along as
    /// [`BundledKind::ALL`] says.
    pub fn of(kind: &str) -> Self {
        match kind {
            "ServingCertificate" => Self::Certificates,
            "CustomResourceDefinition" => Self::Crds,
            // Of pods there are only canaries: bundles bring none.
            "Deployment" | "Pod" => Self::Deployments,
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => Self::Admission,
            _ => BundledKind::named(kind).map_or(Self::Configuration, |bundled| bundled.phase),
        }
    }
}
