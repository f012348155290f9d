//! What the CRDs of a bundle would break.

use std::sync::Arc;

use windlass_api::BundleDeployment;
use windlass_bundle::crds::with_conversion;
use windlass_cluster::apply::FieldOwner;
use windlass_crd::{
    is_converting,
    upgrade_safety::{Finding, Policy, compare, compare_back, is_refused},
};
use windlass_object::ObjectKey;

use super::super::{
    halt::Halt,
    memory::{CrdChange, Loaded},
    reconciler::BundleReconciler,
    report::InstallReport,
};
use crate::install::plan::{Phase, Stage, staged};

impl BundleReconciler {
    /// What the install would break. A CRD that was applied already is put back as it was, whatever others made
    /// of it: that is no upgrade. Back to a bundle that is installed, or was, stored objects decide: whatever came since is
    /// not wanted any more.
    pub(in crate::bundle_deployment) async fn crd_upgrade_findings(
        &self,
        owner: &FieldOwner,
        deployment: &BundleDeployment,
        loaded: &Loaded,
        report: &InstallReport,
    ) -> Result<Vec<Finding>, Halt> {
        let policy = deployment.spec.crd_upgrade_policy();
        if policy.ignores_everything() {
            return Ok(Vec::new());
        }
        let changes = self.crd_changes(owner, loaded).await?;
        let goes_back = report.goes_back;
        // Large schemas take a while.
        let comparison = {
            let (changes, policy) = (changes.clone(), policy.clone());
            tokio::task::spawn_blocking(move || compared(&changes, goes_back, &policy))
        };
        let mut findings = comparison.await?;
        match self.object_findings(owner, &changes, &policy).await {
            // It is refused whatever the objects are.
            Err(Halt::Later(..)) if is_refused(&findings) => {}
            tried => findings.extend(tried?),
        }
        findings.sort();
        Ok(findings)
    }

    /// The CRDs that are there, and that an install would change for the first time.
    pub(in crate::bundle_deployment) async fn crd_changes(
        &self,
        owner: &FieldOwner,
        loaded: &Loaded,
    ) -> Result<Vec<Arc<CrdChange>>, Halt> {
        let plan = &loaded.plan;
        let mut changes = Vec::new();
        for desired in plan.phases.of(Phase::Crds) {
            let Some(key) = ObjectKey::from_object(desired) else {
                continue;
            };
            let Some(live) = self.crd(&key, desired).await? else {
                continue;
            };
            let converts = plan.conversion(&key.name).is_some();
            let applied = Stage::ALL.into_iter().any(|stage| {
                let body = staged(desired, Some(&live), stage, converts || is_converting(&live));
                self.context.applier.was_applied(&body, &live, owner)
            });
            if applied {
                continue;
            }
            // The watch leaves the schemas out.
            let Some(live) = self.context.cluster.read(&key).await? else {
                continue;
            };
            let is_self_managed = plan.is_self_managed() && is_converting(&live);
            let converts = converts || is_self_managed;
            changes.push(Arc::new(CrdChange {
                crd: key.name,
                live,
                desired: with_conversion(desired.clone(), converts),
            }));
        }
        Ok(changes)
    }
}

fn compared(changes: &[Arc<CrdChange>], goes_back: bool, policy: &Policy) -> Vec<Finding> {
    let compare = if goes_back { compare_back } else { compare };
    changes
        .iter()
        .flat_map(|change| compare(&change.crd, &change.live, &change.desired, policy))
        .collect()
}
