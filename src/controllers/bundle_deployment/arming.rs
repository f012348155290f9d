//! Arming what is proven, and disarming what a new bundle no longer has.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tracing::info;

use super::{Halt, Reconciler, install::refused, report::Survey};
use crate::{
    api::{WebhookState, names},
    cluster::{Kind, RequestError, apply::Owner, kinds},
    domain::{
        object::{self, ObjectKey},
        plan::{Phase, Plan, Stage, may_stop_converting, unproven_versions},
        status::{Standing, Step},
    },
};

/// The kinds that send API traffic to admission webhooks.
pub(super) const ADMISSION_KINDS: [Kind; 2] = [
    kinds::VALIDATING_WEBHOOK_CONFIGURATION,
    kinds::MUTATING_WEBHOOK_CONFIGURATION,
];

// === impl Reconciler ===

impl Reconciler {
    /// Whether anything waits for proof: a webhook configuration that is not there or differs, a conversion that is not
    /// in place or was never proven, a version that is not served.
    pub(super) fn is_anything_unarmed(&self, owner: &Owner, plan: &Plan, survey: &Survey) -> bool {
        let admission = plan.phases.of(Phase::Admission).any(|configuration| {
            let live = ObjectKey::of(configuration).and_then(|key| self.context.index.find(&key));
            !live.is_some_and(|live| self.context.applier.is_applied(configuration, &live, owner))
        });
        let conversions = plan.conversions.iter().any(|conversion| {
            let live = self.definition_seen(&conversion.crd);
            let in_place = live.as_deref().and_then(|live| live.pointer("/spec/conversion"));
            survey.conversion(&conversion.crd) != WebhookState::Armed
                || !in_place.is_some_and(|live| conversion.is_in(live))
        });
        let versions = plan.phases.of(Phase::Definitions).any(|wanted| {
            let name = object::text(wanted, "/metadata/name").unwrap_or_default();
            self.definition_seen(name)
                .is_none_or(|live| !unproven_versions(wanted, &live).is_empty())
        });
        admission || conversions || versions
    }

    /// Arms everything. What is in place already is not written again.
    pub(super) async fn arm(
        &self,
        owner: &Owner,
        plan: &Plan,
        trust_bundles: &BTreeMap<String, Vec<u8>>,
        survey: &mut Survey,
    ) -> Result<(), Halt> {
        for conversion in &plan.conversions {
            let Some(live) = self.definition_seen(&conversion.crd) else {
                let message = format!(
                    "the CustomResourceDefinition {} has not been seen yet",
                    conversion.crd
                );
                return Err(Halt::Gate(Standing::waiting(Step::Armed, "Arming", message)));
            };
            let in_place = live
                .pointer("/spec/conversion")
                .is_some_and(|live| conversion.is_in(live));
            if in_place {
                // A crash may have left the entry of an earlier change.
                if let Some(key) = ObjectKey::of(&live) {
                    self.context
                        .applier
                        .release(&key, &live, names::CONVERSION)
                        .await?;
                }
            } else {
                let trust_bundle = trust_bundles
                    .get(&conversion.service)
                    .map(|pem| STANDARD.encode(pem));
                let stanza = conversion.stanza(trust_bundle.as_deref());
                self.context.applier.set_conversion(&live, &stanza).await?;
            }
            survey.set_conversion(&conversion.crd, WebhookState::Armed);
        }
        // New versions come after the conversion that serves them.
        self.ensure_definitions(owner, plan, trust_bundles, Stage::Proven, survey)
            .await?;
        for configuration in plan.phases.of(Phase::Admission) {
            let armed = with_trust(configuration, trust_bundles);
            self.context
                .applier
                .ensure_armed(&armed, configuration, owner)
                .await
                .map_err(refused)?;
            let name = object::text(configuration, "/metadata/name").unwrap_or_default();
            survey.set_webhook(name, WebhookState::Armed);
        }
        Ok(())
    }

    /// Disarms what the plan no longer has, before the revision that serves it goes.
    pub(super) async fn disarm_dropped(&self, owner: &Owner, plan: &Plan) -> Result<(), Halt> {
        for kind in ADMISSION_KINDS {
            for live in self.owned(owner, &kind) {
                let Some(key) = ObjectKey::of(&live) else { continue };
                let kept = plan
                    .phases
                    .of(Phase::Admission)
                    .filter_map(ObjectKey::of)
                    .any(|kept| kept == key);
                if !kept {
                    self.context
                        .cluster
                        .delete(&key, object::text(&live, "/metadata/uid"))
                        .await?;
                    info!(object = %key, "Disarmed");
                }
            }
        }
        for live in self.owned(owner, &kinds::CUSTOM_RESOURCE_DEFINITION) {
            let name = object::text(&live, "/metadata/name").unwrap_or_default();
            if plan.conversions.iter().all(|conversion| conversion.crd != name) {
                self.stop_converting(&live, Step::Accepted).await?;
            }
        }
        Ok(())
    }

    /// Takes the conversion of a CRD back to None, if that loses nothing.
    pub(super) async fn stop_converting(&self, live: &Value, step: Step) -> Result<(), Halt> {
        if object::text(live, "/spec/conversion/strategy") != Some("Webhook") {
            // A crash may have left the entry of an earlier change.
            if let Some(key) = ObjectKey::of(live) {
                self.context
                    .applier
                    .release(&key, live, names::CONVERSION)
                    .await?;
            }
            return Ok(());
        }
        let has_objects = self.has_objects(live).await?;
        if !may_stop_converting(live, has_objects) {
            let name = object::text(live, "/metadata/name").unwrap_or_default();
            let message = format!(
                "{name} serves several versions and has objects: without its conversion they would be lost. Delete the objects, or set served: false on all versions but the one that is stored and rewrite the objects in it; or keep a bundle that converts {name}"
            );
            return Err(Halt::Gate(Standing::failed(step, "ConversionInUse", message)));
        }
        self.context
            .applier
            .set_conversion(live, &json!({"strategy": "None"}))
            .await?;
        Ok(())
    }

    /// Whether objects of a CRD are stored. They are read in the version that they are stored in, which needs no
    /// webhook.
    async fn has_objects(&self, crd: &Value) -> Result<bool, RequestError> {
        let group = object::text(crd, "/spec/group").unwrap_or_default();
        let kind = object::text(crd, "/spec/names/kind").unwrap_or_default();
        let storage = object::items(crd, "/spec/versions")
            .iter()
            .find(|version| version.get("storage").and_then(Value::as_bool) == Some(true))
            .and_then(|version| object::text(version, "/name"))
            .unwrap_or_default();
        let kind = Kind {
            api_version: format!("{group}/{storage}").into(),
            kind: kind.to_owned().into(),
        };
        match self.context.cluster.any(&kind).await {
            // Stored, but not served: it cannot be seen, so it must be supposed.
            Err(RequestError::UnknownKind { .. }) => Ok(true),
            found => Ok(found?.is_some()),
        }
    }

    /// The objects of a kind that were installed for a BundleDeployment, as the watches see them.
    pub(super) fn owned(&self, owner: &Owner, kind: &Kind) -> Vec<std::sync::Arc<Value>> {
        let mut objects = self.context.index.objects(kind);
        objects.retain(|object| Owner::of(object) == Some(&owner.bundle_deployment));
        objects
    }

    fn definition_seen(&self, name: &str) -> Option<std::sync::Arc<Value>> {
        self.context
            .index
            .find(&kinds::CUSTOM_RESOURCE_DEFINITION.object(None, name))
    }
}

/// A webhook configuration with the trust bundle of each Service that it calls.
fn with_trust(configuration: &Value, trust_bundles: &BTreeMap<String, Vec<u8>>) -> Value {
    let mut armed = configuration.clone();
    let Some(webhooks) = armed.get_mut("webhooks").and_then(Value::as_array_mut) else {
        return armed;
    };
    for webhook in webhooks {
        let service = object::text(webhook, "/clientConfig/service/name").unwrap_or_default();
        if let Some(pem) = trust_bundles.get(service) {
            webhook["clientConfig"]["caBundle"] = STANDARD.encode(pem).into();
        }
    }
    armed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_webhook_gets_the_trust_of_its_own_service() {
        let configuration = json!({"webhooks": [
            {"name": "a", "clientConfig": {"service": {"name": "one"}}},
            {"name": "b", "clientConfig": {"service": {"name": "other"}}},
        ]});
        let bundles = BTreeMap::from([
            ("one".to_owned(), b"1".to_vec()),
            ("other".to_owned(), b"2".to_vec()),
        ]);
        let armed = with_trust(&configuration, &bundles);
        assert_eq!(armed["webhooks"][0]["clientConfig"]["caBundle"], "MQ==");
        assert_eq!(armed["webhooks"][1]["clientConfig"]["caBundle"], "Mg==");
    }
}
