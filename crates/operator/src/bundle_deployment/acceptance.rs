//! Whether a bundle is installed at all: everything that speaks against it is found before anything is written.

use std::sync::Arc;

use serde_json::Value;
use windlass_api::{BundleDeployment, BundleStatus, ConversionStatus, WebhookState};
use windlass_bundle::upgrade::{self, Release};
use windlass_cluster::{apply::Applicant, kinds};
use windlass_crd::claims::{self, Api, Claimant};
use windlass_object::{ObjectKey, object};

use super::{
    halt::Halt,
    memory::Loaded,
    reconciler::BundleReconciler,
    report::{InstallReport, webhook_status},
};
use crate::install::{
    plan::{Phase, Plan, PreflightObservation, Refusal, dropped_but_stored, preflight},
    status::Milestone,
};

// === impl BundleReconciler ===

impl BundleReconciler {
    /// What the source holds, if nothing speaks against it.
    pub(super) async fn accept(
        &self,
        owner: &Applicant,
        deployment: &BundleDeployment,
        report: &mut InstallReport,
    ) -> Result<Arc<Loaded>, Halt> {
        check_namespace(&deployment.spec.namespace, &self.context.namespace)?;
        let loaded = self.load(deployment).await?;
        let loaded = self.without_absent(loaded, report).await?;
        self.check_order(deployment, &loaded, report).await?;
        self.check(owner, deployment, &loaded, report).await?;
        Ok(loaded)
    }

    /// Refuses a bundle that may not follow the one that is installed, or in which stored objects would be lost.
    async fn check_order(
        &self,
        deployment: &BundleDeployment,
        loaded: &Loaded,
        report: &InstallReport,
    ) -> Result<(), Halt> {
        let refuse = |refusal: upgrade::UpgradeRefusal| {
            let (reason, message) = (refusal.reason(), refusal.to_string());
            Halt::failed(Milestone::Accepted, reason, message)
        };
        let candidate = release(&loaded.bundle);
        if let Some(installed) = &report.bundle {
            candidate
                .may_follow(
                    &release(installed),
                    &loaded.predecessors,
                    deployment.spec.allow_downgrade,
                )
                .map_err(refuse)?;
        }
        let known = [&report.bundle, &report.installing];
        let newer = known.into_iter().flatten().map(release);
        let Some(newer) = newer.into_iter().find(|known| candidate.is_older_than(known)) else {
            return Ok(());
        };
        for desired in loaded.plan.phases.of(Phase::Crds) {
            let Some(key) = ObjectKey::of(desired) else {
                continue;
            };
            let live = self.context.cluster.read(&key).await?.unwrap_or_default();
            let versions = dropped_but_stored(desired, &live);
            if !versions.is_empty() {
                return Err(refuse(upgrade::UpgradeRefusal::StoredVersions {
                    crd: key.name,
                    versions: versions.into_iter().map(str::to_owned).collect(),
                    candidate: Box::new(candidate),
                    newer: Box::new(newer),
                }));
            }
        }
        Ok(())
    }

    /// Refusals, before anything is written. The claims go into the status first: others see them there.
    async fn check(
        &self,
        owner: &Applicant,
        deployment: &BundleDeployment,
        loaded: &Loaded,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        let plan = &loaded.plan;
        list_webhooks(plan, report);
        self.check_requirements(loaded, report).await?;
        let crds = self.context.index.objects(&kinds::CUSTOM_RESOURCE_DEFINITION);
        let crds: Vec<_> = crds.iter().map(AsRef::as_ref).collect();
        let claimants = self.claimants(deployment, plan);
        if !has_everything(owner, plan, &crds) {
            gate_on_elders(deployment, &claimants)?;
        }
        let mut live = Vec::new();
        for object in plan.phases.all() {
            let Some(key) = ObjectKey::of(object) else {
                continue;
            };
            live.extend(self.live(&key).await?);
        }
        let live: Vec<_> = live.iter().map(AsRef::as_ref).collect();
        let mut refusals = preflight(&PreflightObservation {
            claimant: &owner.bundle_deployment,
            plan,
            adopt: &owner.adopt,
            claimants: &claimants,
            live: &live,
            crds: &crds,
        });
        // What belongs to others is not going to change.
        if refusals.is_empty() {
            let findings = self
                .crd_upgrade_findings(owner, deployment, loaded, report)
                .await?;
            refusals.extend(Refusal::of_crd_upgrade(&findings));
            report.warnings = findings;
        }
        let Some(first) = refusals.first() else {
            return Ok(());
        };
        for refusal in &refusals {
            if let Refusal::ConversionClaimed { crd, .. } = refusal {
                report.set_conversion(crd, WebhookState::Refused);
            }
        }
        let message: Vec<_> = refusals.iter().map(ToString::to_string).collect();
        Err(Halt::failed(
            Milestone::Accepted,
            first.reason(),
            message.join("; "),
        ))
    }

    /// What every BundleDeployment says that it converts; of this one, what its plan says.
    fn claimants(&self, deployment: &BundleDeployment, plan: &Plan) -> Vec<Claimant> {
        let all = self.context.index.objects(&kinds::BUNDLE_DEPLOYMENT);
        let mut claimants: Vec<_> = all.iter().map(|other| Claimant::of(other)).collect();
        for own in &mut claimants {
            if Some(&own.uid) == deployment.metadata.uid.as_ref() {
                own.claims = plan.apis();
            }
        }
        claimants
    }
}

/// Lists in the status what the plan claims and arms, each as it was known to be.
fn list_webhooks(plan: &Plan, report: &mut InstallReport) {
    let known = std::mem::take(&mut report.conversions);
    report.conversions = plan
        .apis()
        .into_iter()
        .map(|api| conversion_status(api, &known))
        .collect();
    let known = std::mem::take(&mut report.webhooks);
    report.webhooks = plan
        .phases
        .of(Phase::Admission)
        .map(|configuration| {
            let mut status = webhook_status(configuration, WebhookState::Disarmed);
            let before = known
                .iter()
                .find(|known| (&known.name, &known.webhook_type) == (&status.name, &status.webhook_type));
            if let Some(before) = before {
                status.state = before.state;
            }
            status
        })
        .collect();
}

/// Whether every CRD that the plan converts belongs to `owner` already: then nobody else can have it.
fn has_everything(owner: &Applicant, plan: &Plan, crds: &[&Value]) -> bool {
    plan.conversions.iter().all(|conversion| {
        crds.iter()
            .filter(|there| object::text(there, "/metadata/name") == Some(&conversion.crd))
            .any(|there| Applicant::of(there) == Some(&owner.bundle_deployment))
    })
}

fn conversion_status(api: Api, known: &[ConversionStatus]) -> ConversionStatus {
    let known = known.iter().find(|known| known.crd == api.crd);
    ConversionStatus {
        crd: api.crd,
        kind: Some(api.kind),
        state: known.map_or(WebhookState::Disarmed, |known| known.state),
    }
}

fn release(bundle: &BundleStatus) -> Release {
    Release {
        package: bundle.package.clone(),
        name: bundle.name.clone(),
        version: bundle.version.clone(),
    }
}

/// Refuses the namespace of Windlass itself: a bundle's pods and its roles would reach the keys of every CA there.
fn check_namespace(namespace: &str, own: &str) -> Result<(), Halt> {
    if namespace != own {
        return Ok(());
    }
    let message = format!(
        "spec.namespace is {own}, where the Windlass operator keeps its keys: delete the BundleDeployment and create it \
         with another namespace"
    );
    Err(Halt::failed(Milestone::Accepted, "NamespaceReserved", message))
}

/// Waits for a BundleDeployment that is older: its claims come first.
fn gate_on_elders(deployment: &BundleDeployment, claimants: &[Claimant]) -> Result<(), Halt> {
    let uid = deployment.metadata.uid.as_deref();
    let Some(elder) = uid.and_then(|uid| claims::older_unobserved_claimant(uid, claimants)) else {
        return Ok(());
    };
    let message = format!(
        "waiting for the older BundleDeployment {} to report what it converts",
        elder.name
    );
    Err(Halt::waiting(Milestone::Accepted, "WaitingForClaims", message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::status::InstallOutcome;

    #[test]
    fn nothing_is_installed_beside_the_keys_of_windlass() {
        assert!(check_namespace("sample-system", "windlass-system").is_ok());
        let Err(Halt::Gate(InstallOutcome::Failed { at, reason, message })) =
            check_namespace("windlass-system", "windlass-system")
        else {
            panic!("it is not refused");
        };
        assert_eq!((at, reason.as_str()), (Milestone::Accepted, "NamespaceReserved"));
        assert!(message.contains("another namespace"), "{message}");
    }
}
