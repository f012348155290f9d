//! Whether a bundle is installed at all: everything that speaks against it is found before anything is written.

use std::sync::Arc;

use serde_json::Value;
use windlass_api::{BundleDeployment, BundleDeploymentSpec, BundleStatus, ConversionStatus, WebhookState};
use windlass_bundle::upgrade::{self, Release};
use windlass_cluster::{RequestError, apply::FieldOwner, kinds};
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
    revision::Ledger,
    status::Milestone,
};

impl BundleReconciler {
    /// Decides whether to install the bundle of the source. All reasons against it are found before the first
    /// write.
    pub(super) async fn accept(
        &self,
        owner: &FieldOwner,
        deployment: &BundleDeployment,
        report: &mut InstallReport,
    ) -> Result<Arc<Loaded>, Halt> {
        check_namespaces(&deployment.spec, &self.context.namespace)?;
        let loaded = match self.load(deployment, report).await {
            Err(Halt::Gate(outcome)) => {
                report.next = Some(report.awaited());
                self.loaded_before(deployment, outcome, report).await?
            }
            loaded => loaded?,
        };
        let loaded = self.overridden(deployment, loaded, report).await?;
        let loaded = self.without_absent(loaded, report).await?;
        report.notices.extend(loaded.plan.notices.iter().cloned());
        let ledger = self.identify(deployment, &loaded, report).await?;
        self.check_order(deployment, &loaded, &ledger, report).await?;
        self.check_upgradeable(deployment, &loaded.bundle, report).await?;
        self.check(owner, deployment, &loaded, report).await?;
        self.gate_on_rights(owner, &loaded.plan, report).await?;
        // What has begun goes on: half of it is there.
        if report.next.as_ref().is_some_and(|next| next.revision.is_none()) {
            self.dry_run(owner, &loaded).await?;
        }
        Ok(loaded)
    }

    /// Refuses a bundle that may not follow the one that is installed, or in which stored objects would be lost.
    async fn check_order(
        &self,
        deployment: &BundleDeployment,
        loaded: &Loaded,
        ledger: &Ledger,
        report: &InstallReport,
    ) -> Result<(), Halt> {
        let refuse = |refusal: upgrade::UpgradeRefusal| {
            let (reason, message) = (refusal.reason(), refusal.to_string());
            Halt::failed(Milestone::Accepted, reason, message)
        };
        let candidate = release(&loaded.bundle);
        let installed = report.installed.as_ref();
        if let Some(installed) = installed {
            candidate
                .may_follow(
                    &release(&installed.bundle),
                    &loaded.predecessors,
                    deployment.spec.allow_downgrade || report.goes_back,
                )
                .map_err(refuse)?;
        }
        // What came after the installed revision may have stored something, too.
        let later = ledger
            .records()
            .iter()
            .filter(|record| installed.is_none_or(|installed| record.number > installed.revision));
        let known = installed
            .map(|installed| &installed.bundle)
            .into_iter()
            .chain(later.map(|record| &record.bundle));
        let mut known = known.map(release);
        let Some(newer) = known.find(|known| candidate.is_older_than(known)) else {
            return Ok(());
        };
        if let Some((crd, versions)) = self.stored_and_dropped(&loaded.plan).await? {
            return Err(refuse(upgrade::UpgradeRefusal::StoredVersions {
                crd,
                versions,
                candidate: Box::new(candidate),
                newer: Box::new(newer),
            }));
        }
        Ok(())
    }

    /// A CRD that lacks versions, in a plan, in which objects are stored, and these versions.
    pub(super) async fn stored_and_dropped(
        &self,
        plan: &Plan,
    ) -> Result<Option<(String, Vec<String>)>, RequestError> {
        for desired in plan.phases.of(Phase::Crds) {
            let Some(key) = ObjectKey::from_object(desired) else {
                continue;
            };
            let live = self.context.cluster.read(&key).await?.unwrap_or_default();
            let versions = dropped_but_stored(desired, &live);
            if !versions.is_empty() {
                let versions = versions.into_iter().map(str::to_owned).collect();
                return Ok(Some((key.name, versions)));
            }
        }
        Ok(None)
    }

    /// Refusals, before anything is written. The claims go into the status first: others see them there.
    async fn check(
        &self,
        owner: &FieldOwner,
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
        let greens: Vec<_> = plan.green_services().collect();
        for key in plan
            .phases
            .all()
            .chain(&greens)
            .filter_map(ObjectKey::from_object)
        {
            live.extend(self.live(&key).await?);
        }
        let live: Vec<_> = live.iter().map(AsRef::as_ref).collect();
        let deployments = self.owned(owner, &kinds::DEPLOYMENT);
        let deployments: Vec<_> = deployments.iter().map(AsRef::as_ref).collect();
        let called = self.called_of_others(owner);
        let called: Vec<_> = called.iter().map(AsRef::as_ref).collect();
        let unserved = self.unserved(owner, deployment, plan, report).await?;
        let mut refusals = preflight(&PreflightObservation {
            claimant: &owner.bundle_deployment,
            plan,
            adopt: &owner.adopt,
            claimants: &claimants,
            live: &live,
            crds: &crds,
            deployments: &deployments,
            called: &called,
            unserved: &unserved,
            allow_interruption: deployment.spec.upgrade.allow_interruption,
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
        let mut claimants: Vec<_> = all.iter().map(|other| Claimant::from_object(other)).collect();
        for own in &mut claimants {
            if Some(&own.uid) == deployment.metadata.uid.as_ref() {
                own.claims = plan.apis();
            }
        }
        claimants
    }
}

/// Lists in the status what the plan claims and arms, each as it was known to be.
pub(super) fn list_webhooks(plan: &Plan, report: &mut InstallReport) {
    let known = std::mem::take(&mut report.conversions);
    report.conversions = plan
        .apis()
        .into_iter()
        .map(|api| conversion_status(api, &known))
        .collect();
    let known = std::mem::take(&mut report.webhooks);
    report.webhooks = plan
        .phases
        .of(Phase::Callers)
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
fn has_everything(owner: &FieldOwner, plan: &Plan, crds: &[&Value]) -> bool {
    plan.conversions.iter().all(|conversion| {
        crds.iter()
            .filter(|there| object::text(there, "/metadata/name") == Some(&conversion.crd))
            .any(|there| FieldOwner::name_in_label(there) == Some(&owner.bundle_deployment))
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

/// Refuses the namespace of Windlass itself, to install into and to watch: a bundle's pods and its roles would reach the keys of
/// every CA there.
fn check_namespaces(spec: &BundleDeploymentSpec, own: &str) -> Result<(), Halt> {
    let message = if spec.namespace == own {
        format!(
            "spec.namespace is {own}, where the Windlass operator keeps its keys: delete the BundleDeployment and create it \
             with another namespace"
        )
    } else if spec.watch_namespaces.iter().any(|watched| watched == own) {
        format!(
            "spec.watchNamespaces includes {own}, where the Windlass operator keeps its keys, and would give the bundle roles there: remove this namespace"
        )
    } else {
        return Ok(());
    };
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
    use serde_json::json;

    use super::*;
    use crate::install::status::InstallOutcome;

    #[test]
    fn no_bundle_gets_at_the_keys_of_windlass() {
        for (namespace, watched, expected) in [
            ("sample-system", json!([]), None),
            ("sample-system", json!(["default", "sample-system"]), None),
            ("windlass-system", json!([]), Some("with another namespace")),
            (
                "sample-system",
                json!(["default", "windlass-system"]),
                Some("spec.watchNamespaces includes windlass-system"),
            ),
        ] {
            let spec = json!({
                "namespace": namespace, "watchNamespaces": watched, "source": {"directory": {"path": "a"}},
            });
            let checked = check_namespaces(&serde_json::from_value(spec).unwrap(), "windlass-system");
            let Some(expected) = expected else {
                assert!(checked.is_ok(), "{namespace} {watched}");
                continue;
            };
            let Err(Halt::Gate(InstallOutcome::Failed { at, reason, message })) = checked else {
                panic!("{namespace} {watched} is not refused");
            };
            assert_eq!((at, reason.as_str()), (Milestone::Accepted, "NamespaceReserved"));
            assert!(message.contains(expected), "{message}");
        }
    }
}
