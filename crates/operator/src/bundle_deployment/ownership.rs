//! For whom objects are applied, and what stays theirs though others change it.

use windlass_api::{BundleDeployment, WebhookState};
use windlass_cluster::{apply::Applicant, kinds};
use windlass_crd::claims::{self, Adoption};

use super::reconciler::BundleReconciler;

// === impl BundleReconciler ===

impl BundleReconciler {
    /// For whom the objects of a BundleDeployment are applied.
    ///
    /// Whoever replaces a CRD by one without labels does not get it: while its conversion is armed, it is taken
    /// back as if it were to be adopted, whichever marks of its own the other has left.
    pub(super) fn owner(&self, deployment: &BundleDeployment) -> Applicant {
        let mut adopt = deployment.spec.adopt.clone();
        let armed = deployment
            .status
            .iter()
            .flat_map(|status| &status.conversions)
            .filter(|conversion| conversion.state == WebhookState::Armed);
        for conversion in armed {
            let live = self.crd_seen(&conversion.crd);
            if live.is_some_and(|live| claims::Owner::is_erased(&live)) {
                adopt.push(Adoption {
                    kind: kinds::CUSTOM_RESOURCE_DEFINITION.kind.to_string(),
                    name: conversion.crd.clone(),
                });
            }
        }
        Applicant {
            bundle_deployment: deployment.metadata.name.clone().unwrap_or_default(),
            uid: deployment.metadata.uid.clone().unwrap_or_default(),
            namespace: deployment.spec.namespace.clone(),
            adopt,
        }
    }
}
