//! Conversions come back first: what is stored meanwhile without them loses fields, and nothing else that an install waits
//! for does.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::{Value, json};
use tracing::info;
use windlass_api::{BundleDeployment, WebhookState};
use windlass_cluster::apply::FieldOwner;
use windlass_crd::claims::{AppliedAs, Owner};
use windlass_object::{ObjectKey, names, object, patch::relabelled};

use super::{
    halt::Halt, memory::Loaded, reconciler::BundleReconciler, report::InstallReport, trust::TrustBundles,
};
use crate::install::{
    plan::{Plan, Stage, staged},
    traffic::{Arming, Color, Traffic},
};

impl BundleReconciler {
    /// Restores armed conversions of the installed revision that another client removed or redirected, and
    /// the labels of CRDs that another client replaced.
    pub(super) async fn restore_conversions(
        &self,
        deployment: &BundleDeployment,
        owner: &FieldOwner,
    ) -> Result<(), Halt> {
        let report = InstallReport::new(deployment);
        let mut crds = self.armed_crds(owner, &report);
        if crds.is_empty() {
            return Ok(());
        }
        let Some(installed) = self.installed_record(deployment, &report).await? else {
            return Ok(());
        };
        let plan = &installed.plan;
        crds.retain(|live| Owner::is_erased(live) || Arming::of(plan).is_lost(live));
        if crds.is_empty() {
            return Ok(());
        }
        let later = self.recorded_since_installed(deployment, &report).await?;
        let arming = Arming {
            plans: [plan]
                .into_iter()
                .chain(later.iter().flatten().map(|later| &later.plan))
                .collect(),
            is_complete: later.iter().all(Option::is_some),
        };
        crds.retain(|live| Owner::is_erased(live) || arming.is_lost(live));
        if crds.is_empty() {
            return Ok(());
        }
        let traffic = self.standing_traffic(owner, plan);
        let trust_bundles = self.trust_bundles(plan)?;
        for key in crds.iter().filter_map(|seen| ObjectKey::from_object(seen)) {
            // A watch that lags shows what was armed before.
            let Some(live) = self.context.cluster.read(&key).await? else {
                continue;
            };
            if arming.is_lost(&live) {
                self.restore_conversion(owner, &arming, &live, &traffic, &trust_bundles)
                    .await?;
            }
            if Owner::is_erased(&live) {
                self.label_again(owner, &key, &arming).await?;
            }
        }
        Ok(())
    }

    /// The CRDs of a BundleDeployment whose conversion is armed, as the status says. One that was replaced may lack its label.
    fn armed_crds(&self, owner: &FieldOwner, report: &InstallReport) -> Vec<Arc<Value>> {
        let armed = report
            .conversions
            .iter()
            .filter(|conversion| conversion.state == WebhookState::Armed);
        armed
            .filter_map(|conversion| self.crd_seen(&conversion.crd))
            .filter(|live| {
                FieldOwner::name_in_label(live) == Some(&owner.bundle_deployment) || Owner::is_erased(live)
            })
            .collect()
    }

    /// The revisions that were recorded after the installed one; `None` for one that is lost.
    async fn recorded_since_installed(
        &self,
        deployment: &BundleDeployment,
        report: &InstallReport,
    ) -> Result<Vec<Option<Arc<Loaded>>>, Halt> {
        let installed = report.installed.as_ref().map(|installed| installed.revision);
        let ledger = self.ledger(deployment).await?;
        let mut later = Vec::new();
        for record in ledger.records() {
            if Some(record.number) > installed {
                later.push(self.recorded(deployment, record.number).await?);
            }
        }
        Ok(later)
    }

    async fn restore_conversion(
        &self,
        owner: &FieldOwner,
        arming: &Arming<'_>,
        live: &Value,
        traffic: &Traffic,
        trust_bundles: &TrustBundles,
    ) -> Result<(), Halt> {
        let name = object::text(live, "/metadata/name").unwrap_or_default();
        let Some(conversion) = traffic.conversion(name) else {
            return Ok(());
        };
        let leads_somewhere = traffic
            .services
            .iter()
            .any(|service| object::text(service, "/metadata/name") == Some(&conversion.service));
        if !leads_somewhere {
            return Ok(());
        }
        let stanza = trust_bundles.stanza(conversion);
        // The next revision may serve versions already that the installed one does not know.
        let desired = arming.plans.first().and_then(|installed| installed.crd(name));
        let body = desired.map(|desired| staged(desired, Some(live), Stage::Common, true));
        let restored = self
            .context
            .applier
            .switch_conversion(live, &stanza, &body.unwrap_or_default())
            .await;
        if arming.plans.len() > 1 || !arming.is_complete {
            // API servers may have called pods of the next revision.
            self.note_disarmed(owner);
        }
        restored?;
        self.announce_overwrite(owner, live);
        info!(crd = name, "Restored the conversion");
        Ok(())
    }

    /// Labels a CRD as ours again: whom it calls is not taken for called by nobody then, and it follows the rotation.
    async fn label_again(
        &self,
        owner: &FieldOwner,
        key: &ObjectKey,
        arming: &Arming<'_>,
    ) -> Result<(), Halt> {
        let Some(live) = self.context.cluster.read(key).await? else {
            return Ok(());
        };
        let Some(plan) = arming.plan_of(&live).filter(|_| Owner::is_erased(&live)) else {
            return Ok(());
        };
        let source = plan
            .crd(&key.name)
            .and_then(|desired| object::annotation(desired, names::INJECT_CA_FROM));
        let patch = relabelled(
            &live,
            &json!({ names::BUNDLE_DEPLOYMENT: owner.bundle_deployment }),
            &json!({
                names::APPLIED_AS: AppliedAs::new(&owner.uid, key).to_string(),
                names::INJECT_CA_FROM: source,
            }),
        );
        self.context.cluster.patch(key, &patch, names::INSTALL).await?;
        info!(object = %key, "Labelled again");
        Ok(())
    }

    /// The traffic of an installed revision, at those of its Services that lead to its pods; without the others. One that
    /// webhooks call and that somebody took away led there.
    pub(super) fn standing_traffic(&self, owner: &FieldOwner, plan: &Plan) -> Traffic {
        let called = self.called_services(owner, plan);
        let mut colors = BTreeMap::new();
        for certificate in &plan.certificates {
            let stands = |color: &Color| {
                let Some(service) = plan.service(&certificate.service, *color) else {
                    return false;
                };
                let is_gone = ObjectKey::from_object(&service)
                    .is_some_and(|key| self.context.index.find(&key).is_none());
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
