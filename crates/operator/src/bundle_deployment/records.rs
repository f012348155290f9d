//! Records of revisions: what was installed is a fact in the cluster, not a memory of its source.
//!
//! ```text
//! accepted -> ConfigMaps with the bundle -> record -> first object … armed -> uids in the inventory
//!                                                                                  |
//!     records that nobody needs, and their ConfigMaps, go <- what is dropped is removed
//! ```

use std::sync::Arc;

use serde_json::Value;
use tracing::{info, warn};
use windlass_api::BundleDeployment;
use windlass_cluster::kinds;
use windlass_object::{ObjectKey, names, object};

use super::{
    halt::Halt,
    loading::bundle_digest,
    memory::{Loaded, RecordVersions},
    pulling::PULLING,
    reconciler::BundleReconciler,
    record_config_maps::{identity, is_owned},
    report::InstallReport,
};
use crate::install::{
    plan::Plan,
    revision::{InstallSettings, Ledger, RevisionInventory, RevisionRecord, decode, encode, owner_reference},
    status::{InstallOutcome, Milestone},
};

impl BundleReconciler {
    /// The records of a BundleDeployment. Those of another of its name, which is gone, go themselves.
    pub(super) async fn ledger(&self, deployment: &BundleDeployment) -> Result<Arc<Ledger>, Halt> {
        let (name, uid) = identity(deployment);
        let seen = self.context.index.objects(&kinds::CONFIG_MAP);
        let seen = versions(seen.iter().map(AsRef::as_ref).filter(|seen| {
            object::text(seen, "/metadata/namespace") == Some(&self.context.namespace)
                && object::label(seen, names::REVISION_OF) == Some(name)
                && is_owned(seen, uid)
        }));
        if let Some(ledger) = self.ledgers.find(name, &seen) {
            return Ok(ledger);
        }
        let selector = format!("{}={name}", names::REVISION_OF);
        let namespace = Some(self.context.namespace.as_str());
        let mut listed = self
            .context
            .cluster
            .list(&kinds::CONFIG_MAP, namespace, Some(&selector))
            .await?;
        listed.retain(|record| is_owned(record, uid));
        let mut records = Vec::new();
        for config_map in &listed {
            match decode(config_map) {
                Ok(record) => records.push(record),
                Err(error) => warn!(bundle_deployment = name, %error, "Cannot read a record"),
            }
        }
        let ledger = Arc::new(Ledger::new(records));
        self.ledgers.keep(name, versions(&listed), ledger.clone());
        Ok(ledger)
    }

    /// Finds out which revision is wanted: the installed one, one that is under way, or another.
    pub(super) async fn identify(
        &self,
        deployment: &BundleDeployment,
        loaded: &Loaded,
        report: &mut InstallReport,
    ) -> Result<Arc<Ledger>, Halt> {
        let ledger = self.ledger(deployment).await?;
        let number = number(&ledger, loaded, report);
        let known = ledger.find(number);
        let image = self.image_of(deployment, loaded, &ledger, known);
        report.want(&loaded.bundle, image, number, known.is_some());
        let installed = report.installed.as_ref();
        report.goes_back = ledger.was_installed(&loaded.bundle.digest)
            || installed.is_some_and(|installed| installed.bundle == loaded.bundle);
        Ok(ledger)
    }

    /// Records an accepted revision before its first object is written. Writes nothing if it is recorded
    /// already.
    pub(super) async fn record(
        &self,
        deployment: &BundleDeployment,
        loaded: &Loaded,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        let name = identity(deployment).0;
        let ledger = self.ledger(deployment).await?;
        let number = number(&ledger, loaded, report);
        self.ensure_stored(deployment, loaded).await?;
        let known = ledger.find(number);
        let image = self.image_of(deployment, loaded, &ledger, known);
        let planned = RevisionInventory::planned(keys(&loaded.plan));
        let record = RevisionRecord {
            number,
            bundle: loaded.bundle.clone(),
            source: deployment.spec.source.origin(),
            image: image.clone(),
            settings: loaded.settings.clone(),
            config_maps: loaded.stored.names(name).collect(),
            installed: known.is_some_and(|known| known.installed),
            inventory: match known {
                Some(known) => planned.after(&known.inventory),
                None => planned,
            },
        };
        if known != Some(&record) {
            self.write_record(deployment, &record).await?;
        }
        report.want(&loaded.bundle, image, number, true);
        Ok(())
    }

    /// The image that a bundle came from, by its digest. Where the record stands in for the registry, it says from which.
    fn image_of(
        &self,
        deployment: &BundleDeployment,
        loaded: &Loaded,
        ledger: &Ledger,
        known: Option<&RevisionRecord>,
    ) -> Option<String> {
        let source = &deployment.spec.source;
        if source.image.is_none() && source.catalog.is_none() {
            return None;
        }
        let (name, digest) = (identity(deployment).0, &loaded.bundle.digest);
        let pulled = self.images.pulls.image_of(name, digest);
        pulled
            .or_else(|| known?.image.clone())
            .or_else(|| ledger.image_of(digest).map(str::to_owned))
    }

    /// The bundle and the plan of the installed revision, as it was recorded; `None` where nothing is installed, or its
    /// record or its bytes are lost.
    pub(super) async fn installed_record(
        &self,
        deployment: &BundleDeployment,
        report: &InstallReport,
    ) -> Result<Option<Arc<Loaded>>, Halt> {
        match &report.installed {
            Some(installed) => self.recorded(deployment, installed.revision).await,
            None => Ok(None),
        }
    }

    /// The same, to be applied: without what was left out, or would be now.
    pub(super) async fn installed_plan(
        &self,
        deployment: &BundleDeployment,
        report: &InstallReport,
    ) -> Result<Option<Arc<Loaded>>, Halt> {
        match self.installed_record(deployment, report).await? {
            Some(installed) => Ok(Some(self.possible(installed).await?.0)),
            None => Ok(None),
        }
    }

    /// The bundle and the plan of a recorded revision; `None` where its record or its bytes are lost.
    pub(super) async fn recorded(
        &self,
        deployment: &BundleDeployment,
        number: i64,
    ) -> Result<Option<Arc<Loaded>>, Halt> {
        let name = identity(deployment).0;
        let ledger = self.ledger(deployment).await?;
        let Some(record) = ledger.find(number) else {
            return Ok(None);
        };
        let RevisionRecord { bundle, settings, .. } = record;
        if let Some(Ok(loaded)) = self.loader.find(name, &bundle.digest, settings) {
            return Ok(Some(loaded));
        }
        let lost = |problem: &str| {
            warn!(
                bundle_deployment = name,
                revision = number,
                problem,
                "A recorded bundle is lost"
            );
        };
        let files = match self.read_config_maps(&record.config_maps).await {
            Ok((files, _)) => files,
            Err(Halt::Gate(
                InstallOutcome::Waiting { message, .. } | InstallOutcome::Failed { message, .. },
            )) => {
                lost(&message);
                return Ok(None);
            }
            Err(halt) => return Err(halt),
        };
        let digest = bundle_digest(&files);
        if digest != bundle.digest {
            lost("its ConfigMaps contain other files");
            return Ok(None);
        }
        let planned = self.planned(name, files, digest, settings.clone()).await?;
        Ok(planned.map_err(|(_, message)| lost(&message)).ok())
    }

    /// What to go on from although its source cannot be read, because of `outcome`: the revision that came from there, if
    /// the spec still asks for it.
    ///
    /// # Errors
    ///
    /// `outcome`, where there is none.
    pub(super) async fn loaded_before(
        &self,
        deployment: &BundleDeployment,
        outcome: InstallOutcome,
        report: &mut InstallReport,
    ) -> Result<Arc<Loaded>, Halt> {
        let (InstallOutcome::Waiting { reason, message, .. }
        | InstallOutcome::Failed { reason, message, .. }) = &outcome
        else {
            return Err(Halt::Gate(outcome));
        };
        let is_unread = ["SourceMissing", "SourceInvalid", PULLING].contains(&reason.as_str());
        if !is_unread && !self.images.is_refused(identity(deployment).0, reason) {
            return Err(Halt::Gate(outcome));
        }
        let settings = InstallSettings::of(&deployment.spec);
        let installed = report.installed.as_ref().map(|installed| installed.revision);
        let ledger = self.ledger(deployment).await?;
        let source = &deployment.spec.source;
        let newest = ledger.newest().map(|newest| newest.number);
        let next = next_of(deployment);
        // A bundle that a catalog had once, and that was given up, is not tried again before the catalog is read.
        let begun = match &source.catalog {
            Some(_) if installed.is_some() => next,
            _ => newest,
        };
        let record = ledger.instead_of(source, &settings, begun, installed);
        let Some(number) = record.map(|record| record.number) else {
            return Err(Halt::Gate(outcome));
        };
        match self.recorded(deployment, number).await? {
            // No news: it is looked for what the record is of already.
            Some(loaded) if reason == PULLING => Ok(loaded),
            Some(loaded) => {
                let message = format!("{message}; continuing from the record of revision {number}");
                report.source_lost = Some((reason.clone(), message));
                Ok(loaded)
            }
            None => Err(Halt::Gate(outcome)),
        }
    }

    /// Sees to it that the bytes of a bundle are in ConfigMaps that go with the BundleDeployment.
    async fn ensure_stored(&self, deployment: &BundleDeployment, loaded: &Loaded) -> Result<(), Halt> {
        let (name, uid) = identity(deployment);
        let namespace = &self.context.namespace;
        let is_there = |part: String| {
            let key = kinds::CONFIG_MAP.object(Some(namespace), &part);
            let seen = self.context.index.find(&key);
            seen.is_some_and(|seen| {
                is_owned(&seen, uid)
                    && seen.get("immutable") == Some(&Value::Bool(true))
                    && !object::is_terminating(&seen)
            })
        };
        if loaded.stored.names(name).all(is_there) {
            return Ok(());
        }
        for mut config_map in loaded.stored.config_maps(name, namespace) {
            config_map["metadata"]["ownerReferences"] = vec![owner_reference(name, uid)].into();
            self.write_config_map(&config_map, uid).await?;
        }
        Ok(())
    }

    pub(super) async fn write_record(
        &self,
        deployment: &BundleDeployment,
        record: &RevisionRecord,
    ) -> Result<(), Halt> {
        let (name, uid) = identity(deployment);
        let encoded = encode(record, name, uid, &self.context.namespace);
        let config_map =
            encoded.map_err(|error| Halt::failed(Milestone::Accepted, "RecordRefused", error.to_string()))?;
        self.write_config_map(&config_map, uid).await?;
        self.ledgers.forget(name);
        info!(
            bundle_deployment = name,
            revision = record.number,
            "Recorded a revision"
        );
        Ok(())
    }
}

/// The revision that the status speaks of as the next one, once it is recorded.
fn next_of(deployment: &BundleDeployment) -> Option<i64> {
    deployment.status.as_ref()?.next.as_ref()?.revision
}

fn number(ledger: &Ledger, loaded: &Loaded, report: &InstallReport) -> i64 {
    ledger.number(&loaded.bundle.digest, &loaded.settings, report.installed.as_ref())
}

/// The objects of a plan.
pub(super) fn keys(plan: &Plan) -> impl Iterator<Item = ObjectKey> {
    plan.phases.all().filter_map(ObjectKey::from_object)
}

fn versions<'a>(config_maps: impl IntoIterator<Item = &'a Value>) -> RecordVersions {
    config_maps
        .into_iter()
        .filter_map(|config_map| {
            let name = object::text(config_map, "/metadata/name")?.to_owned();
            Some((
                name,
                object::text(config_map, "/metadata/resourceVersion")?.to_owned(),
            ))
        })
        .collect()
}
