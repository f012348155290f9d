//! Conversions come back first: what is stored meanwhile without them loses fields, and nothing else that an install waits
//! for does.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;
use tracing::info;
use windlass_api::{BundleDeployment, WebhookState};
use windlass_cluster::apply::Applicant;
use windlass_object::{ObjectKey, object};

use super::{halt::Halt, reconciler::BundleReconciler, report::InstallReport};
use crate::install::{
    plan::Plan,
    traffic::{Color, Traffic},
};

// === impl BundleReconciler ===

impl BundleReconciler {
    /// Puts back conversions of the installed revision that are armed and that somebody took away or pointed elsewhere.
    pub(super) async fn restore_conversions(
        &self,
        deployment: &BundleDeployment,
        owner: &Applicant,
    ) -> Result<(), Halt> {
        let report = InstallReport::new(deployment);
        let lost = self.lost_conversions(owner, &report);
        if lost.is_empty() {
            return Ok(());
        }
        let Some(installed) = self.installed_plan(deployment, &report).await? else {
            return Ok(());
        };
        let plan = &installed.plan;
        let traffic = self.standing_traffic(owner, plan);
        let trust_bundles = self.trust_bundles(plan)?;
        for live in lost {
            let name = object::text(&live, "/metadata/name").unwrap_or_default();
            let Some(conversion) = traffic.conversion(name) else {
                continue;
            };
            let in_place = live
                .pointer("/spec/conversion")
                .is_some_and(|live| conversion.is_in(live));
            let leads_somewhere = traffic
                .services
                .iter()
                .any(|service| object::text(service, "/metadata/name") == Some(&conversion.service));
            if in_place || !leads_somewhere {
                continue;
            }
            let stanza = trust_bundles.stanza(conversion);
            self.context.applier.set_conversion(&live, &stanza).await?;
            self.announce_overwrite(owner, &live).await;
            info!(crd = name, "Restored the conversion");
        }
        Ok(())
    }

    /// The CRDs of a BundleDeployment whose conversion is armed, as the status says, and goes to no Service of its namespace.
    fn lost_conversions(&self, owner: &Applicant, report: &InstallReport) -> Vec<Arc<Value>> {
        let armed = report
            .conversions
            .iter()
            .filter(|conversion| conversion.state == WebhookState::Armed);
        armed
            .filter_map(|conversion| self.crd_seen(&conversion.crd))
            .filter(|live| {
                let service = "/spec/conversion/webhook/clientConfig/service/namespace";
                let is_called = object::text(live, service) == Some(&owner.namespace);
                Applicant::of(live) == Some(&owner.bundle_deployment) && !is_called
            })
            .collect()
    }

    /// The traffic of an installed revision, at those of its Services that lead to its pods; without the others. One that
    /// webhooks call and that somebody took away led there.
    pub(super) fn standing_traffic(&self, owner: &Applicant, plan: &Plan) -> Traffic {
        let called = self.called_services(owner, plan);
        let mut colors = BTreeMap::new();
        for certificate in &plan.certificates {
            let stands = |color: &Color| {
                let Some(service) = plan.service(&certificate.service, *color) else {
                    return false;
                };
                let is_gone =
                    ObjectKey::of(&service).is_some_and(|key| self.context.index.find(&key).is_none());
                (is_gone && is_called(&called, &service)) || self.leads_to_revision(owner, plan, &service)
            };
            let calls = |color: &Color| {
                let service = plan.service(&certificate.service, *color);
                service.is_some_and(|service| is_called(&called, &service))
            };
            let standing = Color::BOTH
                .into_iter()
                .find(|color| calls(color) && stands(color))
                .or_else(|| Color::BOTH.into_iter().find(stands));
            colors.extend(standing.map(|color| (certificate.service.as_str(), color)));
        }
        Traffic::new(plan, &colors)
    }
}

fn is_called(called: &BTreeSet<String>, service: &Value) -> bool {
    object::text(service, "/metadata/name").is_some_and(|name| called.contains(name))
}
