//! Interpreter webhooks that the bundle itself serves.
//!
//! Such a webhook may be down until the bundle is upgraded, so the upgrade must not depend on its answers:
//!
//! - Objects that its server may need are applied without calling it for retention: Deployments, Services, roles, ConfigMaps.
//! - Objects of optional kinds stay unchanged without its answer, and the install continues.

use std::collections::HashSet;

use interpreter::{Operation, webhook::WebhookInterpreter};
use serde_json::Value;
use windlass_bundle::BundledKind;
use windlass_cluster::kinds;
use windlass_object::{names, object};

use super::object_interpretation::Interpretation;

impl Interpretation {
    /// Returns the uids of webhooks not to call for the retention of `desired`, because its bundle serves
    /// them and their server may need it.
    pub(super) fn skipped(&self, desired: &Value) -> HashSet<String> {
        let Some(deployment) = object::label(desired, names::BUNDLE_DEPLOYMENT) else {
            return HashSet::new();
        };
        if !is_required(desired) {
            return HashSet::new();
        }
        let asked = self
            .webhooks
            .interpreters_for(Operation::Retain, desired)
            .into_iter();
        let own = asked.filter(|webhook| self.is_served_by(webhook, deployment));
        own.map(|webhook| webhook.uid().to_owned()).collect()
    }

    /// Reports whether an install may continue and leave `desired` unchanged, if its retention is unknown.
    pub(crate) fn can_stay_unchanged(&self, deployment: &str, desired: &Value) -> bool {
        let rules = self.rules();
        let retain = Operation::Retain;
        if !rules.unlisted().is_empty()
            || rules.unusable_for(retain, desired).is_some()
            || self.is_customized(retain, desired)
        {
            return false;
        }
        let asked = self.webhooks.interpreters_for(retain, desired);
        let first = asked.first();
        first.is_some_and(|webhook| self.is_served_by(webhook, deployment))
    }

    /// Reports whether the Service of a webhook belongs to a BundleDeployment: by its label, or, if it does
    /// not exist, by its namespace.
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

/// Reports whether a server of a bundle may need an object to run.
fn is_required(desired: &Value) -> bool {
    let kind = object::text(desired, "/kind").unwrap_or_default();
    BundledKind::from_kind(kind).is_none_or(|bundled| !bundled.optional)
}
