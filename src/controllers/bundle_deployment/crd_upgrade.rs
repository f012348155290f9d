//! Whether the CustomResourceDefinitions that are there can become those of the bundle.

use super::{Halt, Reconciler};
use crate::{
    api::BundleDeployment,
    cluster::apply::Owner,
    domain::{
        crd_upgrade::{self, Finding, with_conversion},
        object::ObjectKey,
        plan::{Phase, Plan, Stage, staged},
    },
};

// === impl Reconciler ===

impl Reconciler {
    /// What the install would break. A definition that was applied already is put back as it was, whatever others made
    /// of it: that is no upgrade.
    pub(super) async fn crd_upgrade_findings(
        &self,
        owner: &Owner,
        deployment: &BundleDeployment,
        plan: &Plan,
    ) -> Result<Vec<Finding>, Halt> {
        let policy = deployment.spec.crd_upgrade_policy();
        if policy.ignores_everything() {
            return Ok(Vec::new());
        }
        let mut changes = Vec::new();
        for wanted in plan.phases.of(Phase::Definitions) {
            let Some(key) = ObjectKey::of(wanted) else {
                continue;
            };
            let Some(live) = self.definition(&key, wanted).await? else {
                continue;
            };
            let applied = [Stage::Rollout, Stage::Proven].into_iter().any(|stage| {
                let body = staged(wanted, Some(&live), stage);
                self.context.applier.was_applied(&body, &live, owner)
            });
            if applied {
                continue;
            }
            // The watch leaves the schemas out.
            let Some(live) = self.context.cluster.read(&key).await? else {
                continue;
            };
            let converts = plan
                .conversions
                .iter()
                .any(|conversion| conversion.crd == key.name);
            changes.push((key.name, live, with_conversion(wanted.clone(), converts)));
        }
        // Large schemas take a while.
        let compared = tokio::task::spawn_blocking(move || {
            changes
                .iter()
                .flat_map(|(name, live, wanted)| crd_upgrade::compare(name, live, wanted, &policy))
                .collect()
        });
        Ok(compared.await?)
    }
}
