//! Goes on with the storage migration of each CRD.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::Value;
use tracing::info;
use windlass_cluster::{Kind, apply::FieldOwner, kinds};
use windlass_crd::{
    grant::ObjectWork,
    reachable_version,
    storage_migration::{
        Migration, MigrationStep, StorageVersionHistory, converter, is_stored_as_desired,
        is_stored_in_one_version, next_step, stored_versions_patch,
    },
};
use windlass_object::{ObjectKey, names};

use super::pause::paused;
use super::{
    super::{
        halt::{BundleDeploymentError, Halt, LAG},
        reconciler::BundleReconciler,
        report::InstallReport,
    },
    page::Turned,
};
use crate::install::{
    plan::{Phase, Plan},
    status::{InstallOutcome, Milestone},
    traffic::Traffic,
};

/// When objects are tried again that could not be rewritten.
const RETRY: Duration = Duration::from_secs(30);

impl BundleReconciler {
    /// Returns when every object of the plan's CRDs is stored in the version that the bundle stores. Every other
    /// time it goes a step on and halts: from the start, old versions are taken out of the CRD that it let go of.
    pub(in crate::bundle_deployment) async fn migrate_storage(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        traffic: &Traffic,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        for desired in plan.phases.of(Phase::Crds) {
            let Some(key) = ObjectKey::from_object(desired) else {
                continue;
            };
            let seen = self.context.index.find(&key);
            if seen.is_some_and(|seen| is_stored_as_desired(desired, &seen)) {
                report.forget_migration(&key.name);
                continue;
            }
            let conversion = traffic.conversion(&key.name);
            let converter = conversion.map(|conversion| converter(Some(&conversion.stanza(None))));
            // A watch that lags shows the storage version before.
            self.migrate(owner, &key, converter.as_deref(), report).await?;
        }
        report.migrations.clear();
        Ok(())
    }

    /// Goes on with what the installed bundle has begun, while the one that is asked for is refused because of
    /// `outcome`: it may be refused for nothing else but that.
    pub(in crate::bundle_deployment) async fn migrate_meanwhile(
        &self,
        owner: &FieldOwner,
        outcome: InstallOutcome,
        report: &mut InstallReport,
    ) -> Halt {
        for live in self.owned(owner, &kinds::CUSTOM_RESOURCE_DEFINITION) {
            let Some(key) = ObjectKey::from_object(&live) else {
                continue;
            };
            if is_stored_in_one_version(&live) {
                report.forget_migration(&key.name);
                continue;
            }
            match self.migrate(owner, &key, None, report).await {
                Ok(()) => {}
                Err(Halt::Later(_, after)) => return Halt::Later(outcome, after),
                Err(Halt::Gate(_)) => break,
                Err(Halt::Error(error)) => {
                    let name = &owner.bundle_deployment;
                    tracing::warn!(bundle_deployment = name, %error, "Cannot rewrite objects");
                    break;
                }
            }
        }
        Halt::Gate(outcome)
    }

    /// Goes a step on with the objects of one CRD, which `converter` has to convert, if that is known; returns when
    /// there is nothing to do.
    pub(in crate::bundle_deployment) async fn migrate(
        &self,
        owner: &FieldOwner,
        key: &ObjectKey,
        converter: Option<&str>,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        // In this order: what is read is not older than what was seen.
        let seen = self.histories.find(&key.name);
        let Some(live) = self.context.cluster.read(key).await? else {
            return Ok(());
        };
        let live = &live;
        let mut known = self.known_migration(owner, &key.name).await?;
        if let Some(known) = &mut known {
            known.record_histories(seen.iter().chain(&StorageVersionHistory::from_crd(live)));
            report.set_migration(known.clone());
        }
        let now = self.context.clock.now();
        let settle = SignedDuration::try_from(self.timing.stored).unwrap_or(SignedDuration::MAX);
        let next = next_step(live, known.as_ref(), converter, now, settle);
        match next {
            MigrationStep::Nothing => {
                report.forget_migration(&key.name);
                return Ok(());
            }
            MigrationStep::Serve => return Err(nothing_served(&key.name)),
            _ => {}
        }
        self.grant(owner, live, ObjectWork::StorageMigration).await?;
        match (next, known) {
            (MigrationStep::Convert(converter), _) => Err(conversion_changed(&key.name, &converter)),
            // What lies between is on its way.
            (MigrationStep::Begin(_), Some(known))
                if known.may_continue(live) && !seen.is_some_and(|seen| seen.reaches(live)) =>
            {
                Err(rewriting(&known, LAG))
            }
            (MigrationStep::Begin(migration), _) => {
                let halt = settling(&migration, self.timing.stored);
                report.set_migration(migration);
                Err(halt)
            }
            (MigrationStep::Wait(left), Some(migration)) => {
                let left = Duration::try_from(left).unwrap_or(self.timing.stored);
                Err(settling(&migration, left))
            }
            (MigrationStep::Mark, Some(migration)) => Err(self.mark(live, migration, report).await?),
            (MigrationStep::Rewrite, Some(migration)) => {
                Err(self.rewrite(key, live, migration, report).await?)
            }
            // The last three are for what is known already, and the first two have returned.
            _ => Ok(()),
        }
    }

    /// Notes up to where the objects have to be rewritten: as many as there are now.
    async fn mark(
        &self,
        live: &Value,
        mut migration: Migration,
        report: &mut InstallReport,
    ) -> Result<Halt, Halt> {
        let page = self.context.cluster.page(&objects(live), 1, None).await;
        let page = page.map_err(|error| paused(&migration, error))?;
        migration.record_mark(&page.resource_version, page.count());
        let halt = rewriting(&migration, Duration::ZERO);
        report.set_migration(migration);
        Ok(halt)
    }

    /// How far the objects of one CRD are, as the API server has it: a watch that lags shows how far they were.
    async fn known_migration(&self, owner: &FieldOwner, crd: &str) -> Result<Option<Migration>, Halt> {
        let key = kinds::BUNDLE_DEPLOYMENT.object(None, &owner.bundle_deployment);
        let mut live = self.context.cluster.read(&key).await?.unwrap_or_default();
        let told = live.pointer_mut("/status/storageMigrations").map(Value::take);
        let told: Option<Vec<Migration>> =
            serde_json::from_value(told.unwrap_or_default()).map_err(BundleDeploymentError::Decode)?;
        Ok(told.into_iter().flatten().find(|migration| migration.crd == crd))
    }

    /// Rewrites a page; after the last one, says in the CRD that nothing is stored in another version any more.
    async fn rewrite(
        &self,
        key: &ObjectKey,
        live: &Value,
        mut migration: Migration,
        report: &mut InstallReport,
    ) -> Result<Halt, Halt> {
        migration.record_converter(live);
        report.set_migration(migration.clone());
        match self.turn_page(key, &objects(live), &mut migration).await? {
            Turned::Stopped => {}
            Turned::Refused(message) => {
                let outcome = InstallOutcome::failed(Milestone::Migrated, "ObjectsRefused", message);
                return Ok(Halt::Later(outcome, RETRY));
            }
            Turned::Next => report.set_migration(migration.clone()),
            Turned::Last => {
                if self.reduce(key, &mut migration).await? {
                    report.forget_migration(&key.name);
                }
            }
        }
        Ok(rewriting(&migration, Duration::ZERO))
    }

    /// Takes every other version out of `status.storedVersions`, if the storage version is still the one that it was when
    /// the rewriting began, and ever since.
    async fn reduce(&self, key: &ObjectKey, migration: &mut Migration) -> Result<bool, Halt> {
        let seen = self.histories.find(&key.name);
        let Some(live) = self.context.cluster.read(key).await? else {
            return Ok(false);
        };
        migration.record_histories(seen.iter().chain(&StorageVersionHistory::from_crd(&live)));
        if !migration.can_continue(&live) {
            return Ok(false);
        }
        let reduced = self
            .context
            .cluster
            .patch_status_guarded(key, &stored_versions_patch(&live), names::STORAGE)
            .await;
        match reduced {
            Ok(_) => {
                let Migration {
                    version, rewritten, ..
                } = migration;
                info!(object = %key, version, objects = rewritten, "All objects are stored in one version");
                Ok(true)
            }
            Err(error) if error.is_conflict() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl InstallReport {
    fn set_migration(&mut self, migration: Migration) {
        match self
            .migrations
            .iter_mut()
            .find(|known| known.crd == migration.crd)
        {
            Some(known) => *known = migration,
            None => self.migrations.push(migration),
        }
    }

    fn forget_migration(&mut self, crd: &str) {
        self.migrations.retain(|migration| migration.crd != crd);
    }
}

/// The kind in which the objects of `live` are rewritten.
fn objects(live: &Value) -> Kind {
    Kind::from_crd(live, reachable_version(live).unwrap_or_default())
}

fn nothing_served(crd: &str) -> Halt {
    let message = format!(
        "objects of {crd} are stored in several versions, but no version is served in which they could be rewritten"
    );
    Halt::failed(Milestone::Migrated, "NothingServed", message)
}

fn conversion_changed(crd: &str, converter: &str) -> Halt {
    let message =
        format!("storage migration of {crd} is paused until spec.conversion points to {converter} again");
    Halt::waiting(Milestone::Migrated, "ConversionChanged", message)
}

fn settling(migration: &Migration, left: Duration) -> Halt {
    let message = format!(
        "waiting for every API server to store objects of {} as {}",
        migration.crd, migration.version
    );
    Halt::Later(
        InstallOutcome::waiting(Milestone::Migrated, "StorageVersionMoved", message),
        left,
    )
}

/// Goes on after a while, from the start: something else may have changed.
fn rewriting(migration: &Migration, after: Duration) -> Halt {
    let outcome = InstallOutcome::waiting(Milestone::Migrated, "RewritingObjects", migration.to_string());
    Halt::Later(outcome, after)
}
