//! One page of objects, rewritten.

use std::time::Duration;

use tokio::time::MissedTickBehavior;
use windlass_cluster::{Kind, page::Page, storage_rewrite::Reference, telemetry::chain};
use windlass_crd::storage_migration::Migration;
use windlass_object::{ObjectKey, names};

use super::pause::paused;
use crate::bundle_deployment::{halt::Halt, reconciler::BundleReconciler};

/// How many objects a page has: it takes half a second or so, and a minute where webhooks take a second for each. It is done
/// in one go, since whoever comes back to it has to ask for every object of it again.
const PAGE: u32 = 50;

/// The shortest time from one object to the next: the webhooks have to convert each.
const PACE: Duration = Duration::from_millis(10);

/// How many objects of a page may be refused before the others are not tried: old versions stay until none is, and this many
/// say what is in the way.
const MOST_REFUSED: usize = 5;

/// What became of a page.
pub(super) enum Turned {
    /// It is done, and another one comes.
    Next,
    /// It is done, and it was the last.
    Last,
    /// It has to be listed anew.
    Stopped,
    /// Objects cannot be rewritten, and why.
    Refused(String),
}

impl BundleReconciler {
    /// Rewrites the objects of the page at which `migration` is; `definition` is theirs.
    pub(super) async fn turn_page(
        &self,
        crd: &ObjectKey,
        kind: &Kind,
        migration: &mut Migration,
    ) -> Result<Turned, Halt> {
        let listed = self
            .context
            .cluster
            .page(kind, PAGE, migration.next_page.as_deref())
            .await;
        let page = match listed {
            Ok(page) => page,
            Err(error) => {
                let Some(next_page) = error.expired_page() else {
                    return Err(paused(migration, error));
                };
                migration.set_next_page(next_page.map(str::to_owned));
                return Ok(Turned::Next);
            }
        };
        let Some(refused) = self.rewrite_objects(crd, migration, &page).await? else {
            return Ok(Turned::Stopped);
        };
        if !refused.is_empty() {
            let more = if refused.len() < MOST_REFUSED {
                ""
            } else {
                "; there may be more"
            };
            let message = format!(
                "objects of {} cannot be stored as {}; to resume, change or delete them: {}{more}",
                crd.name,
                migration.version,
                refused.join("; ")
            );
            return Ok(Turned::Refused(message));
        }
        let count = u64::try_from(page.objects.len()).unwrap_or(u64::MAX);
        let is_last = page.next.is_none();
        migration.finish_page(count, page.remaining, page.next);
        Ok(if is_last { Turned::Last } else { Turned::Next })
    }

    /// Why objects of a page could not be rewritten; `None` when the CRD was changed meanwhile.
    async fn rewrite_objects(
        &self,
        crd: &ObjectKey,
        migration: &Migration,
        page: &Page<Reference>,
    ) -> Result<Option<Vec<String>>, Halt> {
        let mut pace = tokio::time::interval(PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut refused = Vec::new();
        for object in &page.objects {
            if !migration.must_rewrite(&object.resource_version) {
                continue;
            }
            pace.tick().await;
            let seen = self.context.index.find(crd);
            if seen.is_some_and(|seen| migration.is_stopped_by(&seen)) {
                return Ok(None);
            }
            match self.context.cluster.rewrite(object, names::STORAGE).await {
                Ok(_) => {}
                Err(error) if error.is_rejection() => refused.push(chain(&error)),
                Err(error) => return Err(paused(migration, error)),
            }
            if refused.len() == MOST_REFUSED {
                break;
            }
        }
        Ok(Some(refused))
    }
}
