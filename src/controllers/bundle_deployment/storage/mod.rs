//! Rewrites stored objects after a storage version has moved, a page at a time, and then lets go of old versions.
//!
//! Each reconciliation goes one step on, and the status says how far it is: the next one, or another process, goes on
//! from there.

mod page;

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::Value;
use tracing::info;

use super::{Halt, Reconciler, install::refused, report::Survey};
use crate::{
    api::names,
    cluster::{Kind, apply::Owner, kinds},
    domain::{
        definition::reachable_version,
        object::ObjectKey,
        plan::{Phase, Plan},
        status::{Standing, Step},
        storage_migration::{
            Migration, Next, grant, is_as_wanted, is_stored_in_one_version, next, reduction,
        },
    },
};

use page::Turned;

/// When objects are tried again that could not be rewritten.
const RETRY: Duration = Duration::from_secs(30);

// === impl Reconciler ===

impl Reconciler {
    /// Returns when every object of the plan's definitions is stored in the version that the bundle stores. Every other
    /// time it goes a step on and halts: from the start, old versions are taken out of the definition that it let go of.
    pub(super) async fn migrate_storage(
        &self,
        owner: &Owner,
        plan: &Plan,
        survey: &mut Survey,
    ) -> Result<(), Halt> {
        for wanted in plan.phases.of(Phase::Definitions) {
            let Some(key) = ObjectKey::of(wanted) else {
                continue;
            };
            let seen = self.context.index.find(&key);
            if seen.is_some_and(|seen| is_as_wanted(wanted, &seen)) {
                survey.forget_migration(&key.name);
                continue;
            }
            // A watch that lags shows the storage version before.
            self.migrate(owner, &key, survey).await?;
        }
        survey.migrations.clear();
        Ok(())
    }

    /// Goes on with what the installed bundle has begun, while the one that is asked for is refused because of
    /// `standing`: it may be refused for nothing else but that.
    pub(super) async fn migrate_meanwhile(
        &self,
        owner: &Owner,
        standing: Standing,
        survey: &mut Survey,
    ) -> Halt {
        for live in self.owned(owner, &kinds::CUSTOM_RESOURCE_DEFINITION) {
            let Some(key) = ObjectKey::of(&live) else { continue };
            if is_stored_in_one_version(&live) {
                survey.forget_migration(&key.name);
                continue;
            }
            match self.migrate(owner, &key, survey).await {
                Ok(()) => {}
                Err(Halt::Later(_, after)) => return Halt::Later(standing, after),
                Err(Halt::Gate(_)) => break,
                Err(Halt::Error(error)) => {
                    let name = &owner.bundle_deployment;
                    tracing::warn!(bundle_deployment = name, %error, "Cannot rewrite objects");
                    break;
                }
            }
        }
        Halt::Gate(standing)
    }

    /// Goes a step on with the objects of one definition; returns when there is nothing to do.
    async fn migrate(&self, owner: &Owner, key: &ObjectKey, survey: &mut Survey) -> Result<(), Halt> {
        let Some(live) = self.context.cluster.read(key).await? else {
            return Ok(());
        };
        let live = &live;
        let now = self.context.clock.now();
        let settle = SignedDuration::try_from(self.timing.disarmed).unwrap_or(SignedDuration::MAX);
        let known = survey.migration(&key.name).cloned();
        let next = next(live, known.as_ref(), now, settle);
        if !matches!(next, Next::Nothing | Next::Serve) {
            for object in grant(live, self.context.cluster.user().await?) {
                self.context
                    .applier
                    .ensure(&object, owner)
                    .await
                    .map_err(refused)?;
            }
        }
        match (next, known) {
            (Next::Nothing, _) => {
                survey.forget_migration(&key.name);
                Ok(())
            }
            (Next::Serve, _) => {
                let message = format!(
                    "objects of {} are stored in several versions, but none is served in which they could be rewritten",
                    key.name
                );
                let standing = Standing::failed(Step::Migrated, "NothingServed", message);
                Err(Halt::Gate(standing))
            }
            (Next::Begin(migration), _) => {
                let halt = settling(&migration, self.timing.disarmed);
                survey.set_migration(migration);
                Err(halt)
            }
            (Next::Wait(left), Some(migration)) => {
                let left = Duration::try_from(left).unwrap_or(self.timing.disarmed);
                Err(settling(&migration, left))
            }
            (Next::Mark, Some(mut migration)) => {
                let page = self.context.cluster.page(&objects(live), 1, None).await?;
                migration.mark(&page.resource_version, page.count());
                let halt = again("RewritingObjects", migration.to_string());
                survey.set_migration(migration);
                Err(halt)
            }
            (Next::Rewrite, Some(migration)) => Err(self.rewrite(key, live, migration, survey).await?),
            // These steps are for what is known already.
            (Next::Wait(_) | Next::Mark | Next::Rewrite, None) => Ok(()),
        }
    }

    /// Rewrites a page; after the last one, says in the definition that nothing is stored in another version any more.
    async fn rewrite(
        &self,
        key: &ObjectKey,
        live: &Value,
        mut migration: Migration,
        survey: &mut Survey,
    ) -> Result<Halt, Halt> {
        match self.turn_page(key, &objects(live), &mut migration).await? {
            Turned::Stopped => {}
            Turned::Refused(message) => {
                let standing = Standing::failed(Step::Migrated, "ObjectsRefused", message);
                return Ok(Halt::Later(standing, RETRY));
            }
            Turned::Next => survey.set_migration(migration.clone()),
            Turned::Last => {
                if self.reduce(key, &migration).await? {
                    survey.forget_migration(&key.name);
                }
            }
        }
        Ok(again("RewritingObjects", migration.to_string()))
    }

    /// Takes every other version out of `status.storedVersions`, if the definition is still as it was when the rewriting
    /// began.
    async fn reduce(&self, key: &ObjectKey, migration: &Migration) -> Result<bool, Halt> {
        let Some(live) = self.context.cluster.read(key).await? else {
            return Ok(false);
        };
        if !migration.is_about(&live) {
            return Ok(false);
        }
        let reduced = self
            .context
            .cluster
            .patch_status_guarded(key, &reduction(&live), names::STORAGE)
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

// === impl Survey ===

impl Survey {
    fn migration(&self, crd: &str) -> Option<&Migration> {
        self.migrations.iter().find(|migration| migration.crd == crd)
    }

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
    Kind::of_definition(live, reachable_version(live).unwrap_or_default())
}

fn settling(migration: &Migration, left: Duration) -> Halt {
    let message = format!(
        "waiting until every API server stores objects of {} as {}",
        migration.crd, migration.version
    );
    Halt::Later(
        Standing::waiting(Step::Migrated, "StorageVersionMoved", message),
        left,
    )
}

/// Goes on at once, from the start: something else may have changed.
fn again(reason: &str, message: String) -> Halt {
    Halt::Later(Standing::waiting(Step::Migrated, reason, message), Duration::ZERO)
}
