//! Removes field managers at versions that a plan drops, while those versions can still be converted: server-side applies of the
//! objects would fail later.

use std::time::Duration;

use serde_json::Value;
use tracing::{info, warn};
use windlass_cluster::{
    Kind, RequestError, apply::FieldOwner, field_managers::ManagedObject, telemetry::chain,
};
use windlass_crd::{
    field_managers::without_versions, grant::ObjectWork, is_converting, reachable_version,
    stage::dropped_versions, version_name,
};
use windlass_object::{ObjectKey, names, object};

use super::{halt::Halt, objects::Armament, reconciler::BundleReconciler, report::InstallReport};
use crate::install::{
    plan::{Phase, Plan, Stage},
    status::{InstallOutcome, Milestone},
};

/// Objects of a list page. Field managers may be longer than the rest of the metadata.
const PAGE: u32 = 100;

/// Objects that are written before the next look.
const BATCH: usize = 500;

/// Failures after which the others of a batch are not tried: a webhook may not answer.
const MOST_FAILED: usize = 3;

impl BundleReconciler {
    /// Removes field managers at dropped versions, before conversions move to pods that do not know these versions. First stops
    /// serving the versions, so that clients add no field managers.
    pub(super) async fn release_dropped_versions(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        armament: &Armament<'_>,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        for desired in plan.phases.of(Phase::Crds) {
            let Some(key) = ObjectKey::from_object(desired) else {
                continue;
            };
            let Some(live) = self.crd(&key, desired).await? else {
                continue;
            };
            // `disarm_dropped` removes field managers before it ends a conversion.
            let ends = armament.traffic.conversion(&key.name).is_none() && is_converting(&live);
            if ends || self.managed_at_dropped(desired, &live).await.is_empty() {
                continue;
            }
            self.ensure_crd(owner, plan, desired, armament, Stage::Common, report)
                .await?;
            self.gate_on_disarmed(owner, Milestone::Armed)?;
            self.release_managers(owner, desired, &live, Milestone::Armed)
                .await?;
        }
        Ok(())
    }

    /// Halts after it has removed field managers at versions that `desired` drops. Those that cannot be removed do not stop an
    /// install: it may replace what is broken.
    pub(super) async fn release_managers(
        &self,
        owner: &FieldOwner,
        desired: &Value,
        live: &Value,
        step: Milestone,
    ) -> Result<(), Halt> {
        let managed = self.managed_at_dropped(desired, live).await;
        if managed.is_empty() {
            return Ok(());
        }
        self.grant(owner, live, ObjectWork::StorageMigration).await?;
        let (mut released, mut failed) = (0_usize, 0);
        for object in &managed {
            match self.context.cluster.write_managers(object, names::STORAGE).await {
                Ok(()) => released += 1,
                // The next look finds it again, or it was deleted.
                Err(error) if error.is_conflict() || error.is_not_found() => released += 1,
                Err(error) => {
                    failed += 1;
                    warn!(object = %object.key, error = chain(&error), "Cannot remove field managers at a dropped version");
                }
            }
            if failed == MOST_FAILED {
                break;
            }
        }
        let name = object::text(live, "/metadata/name").unwrap_or_default();
        info!(
            crd = name,
            released, failed, "Removed field managers at dropped versions"
        );
        if released == 0 || failed == MOST_FAILED {
            return Ok(());
        }
        let message = format!(
            "removing field managers at versions of {name} that the bundle drops, so that server-side applies still succeed"
        );
        Err(Halt::Later(
            InstallOutcome::waiting(step, "DroppingVersion", message),
            Duration::ZERO,
        ))
    }

    /// Returns objects with field managers at versions that `desired` drops, up to [`BATCH`]; none if they cannot be listed.
    async fn managed_at_dropped(&self, desired: &Value, live: &Value) -> Vec<ManagedObject> {
        let dropped: Vec<_> = dropped_versions(desired, live).map(version_name).collect();
        let reachable = reachable_version(live).filter(|version| !dropped.contains(version));
        let Some(version) = reachable.filter(|_| !dropped.is_empty()) else {
            return Vec::new();
        };
        let kind = Kind::from_crd(live, version);
        let group = object::text(live, "/spec/group").unwrap_or_default();
        match self.managed_at(&kind, group, &dropped).await {
            Ok(managed) => managed,
            Err(error) => {
                warn!(%kind, error = chain(&error), "Cannot look for field managers at dropped versions");
                Vec::new()
            }
        }
    }

    async fn managed_at(
        &self,
        kind: &Kind,
        group: &str,
        versions: &[&str],
    ) -> Result<Vec<ManagedObject>, RequestError> {
        let mut managed = Vec::new();
        let mut next = None;
        loop {
            let without = |fields: &Value| without_versions(fields, group, versions);
            let cluster = &self.context.cluster;
            let page = cluster.managed_page(kind, PAGE, next.as_deref(), without).await?;
            managed.extend(page.objects);
            next = page.next;
            if next.is_none() || managed.len() >= BATCH {
                return Ok(managed);
            }
        }
    }
}
