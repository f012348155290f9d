//! Upkeep of records: the objects of the installed revision, and what nobody needs any more.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_api::BundleDeployment;
use windlass_cluster::{RequestError, kinds};
use windlass_object::{names, object};

use super::{
    halt::Halt,
    reconciler::BundleReconciler,
    record_config_maps::{identity, is_owned},
    records::keys,
    report::InstallReport,
};
use crate::install::{
    plan::Plan,
    revision::{InventoryItem, RevisionInventory, RevisionRecord},
};

impl BundleReconciler {
    /// Notes in the record of the installed revision which objects it has, after they were applied and armed.
    pub(super) async fn note_inventory(
        &self,
        deployment: &BundleDeployment,
        plan: &Plan,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        self.note(deployment, plan, report, true).await
    }

    /// Leaves in the records what is needed, after everything was removed that the installed revision does not have:
    /// the inventory names its objects alone, and records of long ago go.
    pub(super) async fn settle_records(
        &self,
        deployment: &BundleDeployment,
        plan: &Plan,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        self.note(deployment, plan, report, false).await?;
        self.prune(deployment, report).await
    }

    /// `keep_rest`: objects of the inventory that the plan does not have are still there.
    async fn note(
        &self,
        deployment: &BundleDeployment,
        plan: &Plan,
        report: &mut InstallReport,
        keep_rest: bool,
    ) -> Result<(), Halt> {
        let installed = report.installed.as_ref().map(|installed| installed.revision);
        let mut ledger = self.ledger(deployment).await?;
        if let Some(known) = installed.and_then(|number| ledger.find(number)) {
            let inventory = self.observed(plan, &known.inventory, keep_rest).await?;
            let record = RevisionRecord {
                installed: true,
                inventory,
                ..known.clone()
            };
            if *known != record {
                self.write_record(deployment, &record).await?;
                ledger = self.ledger(deployment).await?;
            }
        }
        if let Some(installed) = &mut report.installed {
            let record = ledger.find(installed.revision);
            installed.image = record.and_then(|record| record.image.clone());
        }
        report.history = ledger.history(installed);
        Ok(())
    }

    /// The objects of a plan with their uids; with `keep_rest`, also those that were applied before. What no watch shows is
    /// asked for once.
    async fn observed(
        &self,
        plan: &Plan,
        known: &RevisionInventory,
        keep_rest: bool,
    ) -> Result<RevisionInventory, RequestError> {
        let uid = |live: &Value| object::text(live, "/metadata/uid").map(str::to_owned);
        let seen: RevisionInventory = keys(plan)
            .map(|key| {
                let seen = self.context.index.find(&key);
                let uid = seen.and_then(|seen| uid(&seen));
                InventoryItem { key, uid }
            })
            .collect();
        let planned = seen.items().len();
        let mut items = seen.after(known).into_items();
        if !keep_rest {
            items.truncate(planned);
        }
        for item in items.iter_mut().filter(|item| item.uid.is_none()) {
            let live = self.live(&item.key).await?;
            item.uid = live.and_then(|live| uid(&live));
        }
        Ok(items.into_iter().collect())
    }

    /// Deletes records that nobody needs, and ConfigMaps with bundles that no record and no source names.
    async fn prune(&self, deployment: &BundleDeployment, report: &InstallReport) -> Result<(), Halt> {
        let (name, uid) = identity(deployment);
        let ledger = self.ledger(deployment).await?;
        let installed = report.installed.as_ref().map(|installed| installed.revision);
        let next = report.next.as_ref().and_then(|next| next.revision);
        let outdated: BTreeSet<_> = ledger
            .outdated(installed, next)
            .iter()
            .map(|record| record.number)
            .collect();
        let (gone, kept): (Vec<_>, Vec<_>) = ledger
            .records()
            .iter()
            .partition(|record| outdated.contains(&record.number));
        let seen = self.context.index.objects(&kinds::BUNDLE_DEPLOYMENT);
        let mut named: BTreeSet<String> = kept
            .iter()
            .flat_map(|record| record.config_maps.iter().cloned())
            .chain(seen.iter().flat_map(|deployment| sources(deployment)))
            .collect();
        for record in gone {
            self.delete_record(deployment, record.number).await?;
        }
        let mut stored = self.context.index.objects(&kinds::CONFIG_MAP);
        stored.retain(|seen| {
            let config_map = object::text(seen, "/metadata/name").unwrap_or_default();
            object::text(seen, "/metadata/namespace") == Some(&self.context.namespace)
                && object::label(seen, names::BUNDLE_SOURCE) == Some(name)
                && is_owned(seen, uid)
                && !named.contains(config_map)
        });
        if stored.is_empty() {
            return Ok(());
        }
        // What a watch has not shown yet may name them.
        for deployment in self
            .context
            .cluster
            .list(&kinds::BUNDLE_DEPLOYMENT, None, None)
            .await?
        {
            named.extend(sources(&deployment));
        }
        stored.retain(|seen| object::text(seen, "/metadata/name").is_some_and(|part| !named.contains(part)));
        for config_map in stored {
            self.delete_own(&config_map).await?;
        }
        Ok(())
    }
}

/// The ConfigMaps that the source of a BundleDeployment names.
fn sources(deployment: &Value) -> Vec<String> {
    let named = object::items(deployment, "/spec/source/configMaps").iter();
    named
        .filter_map(|config_map| object::text(config_map, "/name").map(str::to_owned))
        .collect()
}
