//! An install: what there is to be, and what it needs.

use serde_json::Value;
use windlass_bundle::{
    ClusterServiceVersion, Phase,
    render::{Conversion, Rendered, WebhookCertificate},
};
use windlass_crd::claims::Api;
use windlass_object::object;

use super::phases::Phases;
use crate::install::canary;

/// An install: what there is to be, and what it needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The namespace of the install.
    pub namespace: String,
    /// Every object, with CRDs without conversion and webhook configurations without CA bundles.
    pub phases: Phases,
    /// The conversions that are claimed.
    pub conversions: Vec<Conversion>,
    /// The serving certificates that are needed.
    pub certificates: Vec<WebhookCertificate>,
    /// Whether a new revision is tried out in a canary.
    pub canary: bool,
    /// Custom resources that the author of the bundle gives as examples.
    pub examples: Vec<Value>,
}

// === impl Plan ===

impl Plan {
    /// The plan of an install; `canary`: whether it is desired, where the bundle has webhooks.
    pub fn new(rendered: Rendered, csv: ClusterServiceVersion<'_>, canary: bool) -> Self {
        let Rendered {
            namespace,
            mut objects,
            admission,
            conversions,
            certificates,
        } = rendered;
        let has_webhooks = !(admission.is_empty() && conversions.is_empty());
        objects.extend(admission);
        let deployments = objects
            .iter_mut()
            .filter(|object| object::text(object, "/kind") == Some("Deployment"));
        deployments.for_each(canary::stamp);
        Self {
            canary: canary && has_webhooks,
            examples: csv.examples(),
            namespace,
            phases: Phases::new(objects),
            conversions,
            certificates,
        }
    }

    /// The conversion of a CustomResourceDefinition, if it is claimed.
    pub fn conversion(&self, crd_name: &str) -> Option<&Conversion> {
        self.conversions
            .iter()
            .find(|conversion| conversion.crd == crd_name)
    }

    /// The CustomResourceDefinition of that name.
    pub fn crd(&self, name: &str) -> Option<&Value> {
        self.phases
            .of(Phase::Crds)
            .find(|crd| object::text(crd, "/metadata/name") == Some(name))
    }

    /// The APIs whose conversion is claimed.
    pub fn apis(&self) -> Vec<Api> {
        self.phases
            .of(Phase::Crds)
            .filter_map(Api::of)
            .filter(|api| self.conversion(&api.crd).is_some())
            .collect()
    }
}
