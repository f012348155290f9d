//! Webhooks that are served by the bundle about whose objects they are asked.
//!
//! Such a webhook may be down because the bundle has to be mended, and then nobody can say what must be kept of the bundle's objects. So
//! that it comes up again by an upgrade:
//!
//! - What its server may need is applied without asking it what to keep: Deployments, Services, roles, ConfigMaps.
//! - Without its answer the rest (of kinds that an operator works without) stays as it is, and the install goes on.

use std::collections::HashSet;

use interpreter::{Operation, webhook::WebhookInterpreter};
use serde_json::Value;
use windlass_bundle::BundledKind;
use windlass_cluster::kinds;
use windlass_object::{names, object};

use super::object_interpretation::Interpretation;

// === impl Interpretation ===

impl Interpretation {
    /// The webhooks that are not asked what to keep of `desired`, by their uid: its bundle serves them itself, and they may need it.
    pub(super) fn spared(&self, desired: &Value) -> HashSet<String> {
        let Some(deployment) = object::label(desired, names::BUNDLE_DEPLOYMENT) else {
            return HashSet::new();
        };
        if !may_be_needed(desired) {
            return HashSet::new();
        }
        let asked = self.webhooks.asked(Operation::Retain, desired).into_iter();
        let own = asked.filter(|webhook| self.is_served_by(webhook, deployment));
        own.map(|webhook| webhook.uid().to_owned()).collect()
    }

    /// Whether an install may go on and leave `desired` as it is, of which nobody says what must be kept.
    pub(crate) fn may_be_left(&self, deployment: &str, desired: &Value) -> bool {
        let learned = self.learned();
        let retain = Operation::Retain;
        if !learned.unlisted().is_empty()
            || learned.unusable_for(retain, desired).is_some()
            || self.is_customized(retain, desired)
        {
            return false;
        }
        let asked = self.webhooks.asked(retain, desired);
        let first = asked.first();
        first.is_some_and(|webhook| self.is_served_by(webhook, deployment))
    }

    /// Whether the Service of a webhook is one of a BundleDeployment: by its label, or in its namespace, where it is gone.
    fn is_served_by(&self, webhook: &WebhookInterpreter, deployment: &str) -> bool {
        let Some(service) = webhook.service() else {
            return false;
        };
        let key = kinds::SERVICE.object(Some(&service.namespace), &service.name);
        if let Some(service) = self.index.find(&key) {
            return object::label(&service, names::BUNDLE_DEPLOYMENT) == Some(deployment);
        }
        let deployment = self
            .index
            .find(&kinds::BUNDLE_DEPLOYMENT.object(None, deployment));
        let namespace = deployment
            .as_deref()
            .and_then(|deployment| object::text(deployment, "/spec/namespace"));
        namespace == Some(service.namespace.as_str())
    }
}

/// Whether a server of a bundle may need an object of it to run.
fn may_be_needed(desired: &Value) -> bool {
    let kind = object::text(desired, "/kind").unwrap_or_default();
    BundledKind::from_kind(kind).is_none_or(|bundled| !bundled.optional)
}
