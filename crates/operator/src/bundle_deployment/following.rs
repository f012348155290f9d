//! A channel of a catalog: one bundle after the other, each when the one before is wholly through.
//!
//! What is wanted follows from the catalog, from what is installed and from what has begun, each time anew.

use std::time::Instant;

use catalog::{CatalogPackage, InstalledRelease, ResolutionError, UpgradeEdge, UpgradePath, UpgradeRequest};
use oci::ImageReference;
use version_range::{Version, VersionConstraint};
use windlass_api::{
    BundleDeployment, BundleStatus, CatalogSource, CatalogStatus, ImageSource, InstalledRevision,
    NextRevision,
};
use windlass_object::{
    names,
    text::{shortened, tidied},
};

use super::{
    halt::Halt,
    loading::refused,
    memory::{LoadOutcome, PullState},
    pulling::{CatalogImage, FollowedCatalog, PULLING},
    reconciler::BundleReconciler,
    record_config_maps::identity,
    report::InstallReport,
};
use crate::install::{
    following::{BegunBundle, BundleApproval, FollowObservation, NextBundle, Staying, approval_command, way},
    revision::{InstallSettings, RevisionRecord},
    status::Milestone,
};

/// The reason while a bundle of a catalog waits for an approval.
pub(super) const WAITING_FOR_APPROVAL: &str = "WaitingForApproval";

/// The most bytes of why there is no path: names in it are those of strangers.
const LONGEST: usize = 2048;

impl BundleReconciler {
    /// Loads the bundle of a catalog to install: the installed one, or the next one on the path to the wanted
    /// version.
    pub(super) async fn load_next(
        &self,
        deployment: &BundleDeployment,
        source: &CatalogSource,
        settings: &InstallSettings,
        report: &mut InstallReport,
    ) -> Result<LoadOutcome, Halt> {
        let name = identity(deployment).0;
        let reference: ImageReference = source
            .reference
            .parse()
            .map_err(|error| refused("SourceInvalid", format!("spec.source.catalog.ref: {error}")))?;
        let wanted = source
            .version
            .as_deref()
            .map(VersionConstraint::parse)
            .transpose();
        let wanted = wanted
            .map_err(|error| refused("SourceInvalid", format!("spec.source.catalog.version: {error}")))?;
        let installed = report.installed.clone();
        check_package(source, installed.as_ref())?;
        let approved = annotated(deployment);
        report.use_up(approved);

        let catalog = self.catalog(name, source, &reference);
        let record = self.begun_after(deployment, installed.as_ref()).await?;
        let status = deployment.status.clone().unwrap_or_default();
        let observed = FollowObservation {
            status: &status,
            generation: deployment.metadata.generation,
            begun: record.as_ref().map(|record| BegunBundle {
                name: &record.bundle.name,
                image: record.image.as_deref(),
            }),
            approval: source.approval,
            approved,
        };
        if let Some(record) = &record
            && observed.goes_on()
            && let Some(begun) = self
                .load_recorded(deployment, &record.bundle.digest, settings)
                .await?
        {
            report.follows_soon = true;
            return Ok(begun);
        }
        let FollowedCatalog { digest, package } = catalog?;
        let path = resolve(&package, source, wanted.as_ref(), installed.as_ref())?;
        report.note_way(way(digest.as_str(), &path));
        match observed.next_bundle(&path) {
            NextBundle::Edge(edge) => {
                let pinned = observed.begun.and_then(|begun| begun.pinned(edge));
                let loaded = self.load_edge(deployment, source, settings, edge, pinned).await?;
                report.follows_soon = true;
                Ok(loaded)
            }
            NextBundle::Installed(why) => {
                report.note_staying(why);
                let Some(installed) = installed else {
                    let message = report.approval_wanted(name).unwrap_or_default();
                    return Err(Halt::failed(Milestone::Accepted, WAITING_FOR_APPROVAL, message));
                };
                self.images.pulls.drop_files(name);
                self.load_installed(deployment, source, settings, &installed, &package)
                    .await
            }
        }
    }

    /// The catalog, as it was read last, which is looked at anew where that is due.
    fn catalog(
        &self,
        name: &str,
        source: &CatalogSource,
        reference: &ImageReference,
    ) -> Result<FollowedCatalog, Halt> {
        let wanted = CatalogImage::of(source);
        let (state, is_due) = self.images.catalogs.look(name, &wanted, Instant::now());
        if is_due {
            self.images
                .clone()
                .start_catalog(name.to_owned(), wanted, reference.clone());
        }
        match state {
            PullState::Pulling => {
                let message = format!("reading the catalog {}", source.reference);
                Err(Halt::waiting(Milestone::Accepted, PULLING, message))
            }
            PullState::Failed(failure) => Err(failure.into()),
            PullState::Found(found) => Ok(found),
        }
    }

    /// The record of what has begun after the installed revision: it came from the same channel, and the status speaks of it.
    async fn begun_after(
        &self,
        deployment: &BundleDeployment,
        installed: Option<&InstalledRevision>,
    ) -> Result<Option<RevisionRecord>, Halt> {
        let next = deployment.status.as_ref().and_then(|status| status.next.as_ref());
        let Some(number) = next.and_then(|next| next.revision) else {
            return Ok(None);
        };
        let ledger = self.ledger(deployment).await?;
        let origin = deployment.spec.source.origin();
        let begun = ledger.find(number).filter(|record| {
            let is_installed =
                installed.is_some_and(|installed| installed.bundle.digest == record.bundle.digest);
            record.source.origin() == origin && !is_installed
        });
        Ok(begun.cloned())
    }

    /// What comes of a bundle that may follow, whose image is `pinned` where it was pulled before.
    async fn load_edge(
        &self,
        deployment: &BundleDeployment,
        source: &CatalogSource,
        settings: &InstallSettings,
        edge: &UpgradeEdge,
        pinned: Option<ImageReference>,
    ) -> Result<LoadOutcome, Halt> {
        let image = pinned.map_or_else(|| edge.image.clone(), |pinned| pinned.to_string());
        let image = image_of(source, image);
        let loaded = self.load_image(deployment, &image, settings).await?;
        if let Ok(loaded) = &loaded {
            check_identity(source, edge, &loaded.bundle)?;
        }
        Ok(loaded)
    }

    /// What comes of the installed bundle: it is in its record. Where that is lost, it is pulled.
    async fn load_installed(
        &self,
        deployment: &BundleDeployment,
        source: &CatalogSource,
        settings: &InstallSettings,
        installed: &InstalledRevision,
        package: &CatalogPackage,
    ) -> Result<LoadOutcome, Halt> {
        let digest = &installed.bundle.digest;
        if let Some(recorded) = self.load_recorded(deployment, digest, settings).await? {
            return Ok(recorded);
        }
        let named = || Some(package.bundles.get(&installed.bundle.name)?.image.clone());
        let Some(image) = installed.image.clone().or_else(named) else {
            let message = format!(
                "the record of {} is lost, and the catalog does not contain it: reinstall it with windlass install",
                installed.bundle.name
            );
            return Err(Halt::waiting(Milestone::Accepted, "SourceMissing", message));
        };
        self.load_image(deployment, &image_of(source, image), settings)
            .await
    }

    /// What comes of a bundle that is recorded; `None` where its bytes are lost.
    async fn load_recorded(
        &self,
        deployment: &BundleDeployment,
        digest: &str,
        settings: &InstallSettings,
    ) -> Result<Option<LoadOutcome>, Halt> {
        let name = identity(deployment).0;
        if let Some(outcome) = self.loader.find(name, digest, settings) {
            return Ok(Some(outcome));
        }
        let Some(files) = self.recorded_files(deployment, digest).await? else {
            return Ok(None);
        };
        let planned = self.planned(name, files, digest.to_owned(), settings.clone());
        Ok(Some(planned.await?))
    }
}

impl InstallReport {
    /// Notes that an approval has done what it is for: it approves nothing any more.
    fn use_up(&mut self, approved: Option<&str>) {
        let installed = self.installed.as_ref().map(|installed| &*installed.bundle.name);
        let is_done = |value: &&str| {
            BundleApproval::parse(value).is_some_and(|approval| Some(approval.bundle) == installed)
        };
        if let Some(value) = approved.filter(is_done) {
            self.catalog.get_or_insert_default().approved = Some(value.to_owned());
        }
    }

    /// Forgets the catalog of a source that is none, but not what was approved.
    pub(super) fn leave_catalog(&mut self) {
        let approved = self.catalog.take().and_then(|catalog| catalog.approved);
        self.catalog = approved.map(|approved| CatalogStatus {
            approved: Some(approved),
            ..CatalogStatus::default()
        });
    }

    fn note_way(&mut self, way: CatalogStatus) {
        let approved = self.catalog.take().and_then(|catalog| catalog.approved);
        self.catalog = Some(CatalogStatus { approved, ..way });
    }

    /// Notes that what is installed is not next any more.
    pub(super) fn pass_installed(&mut self) {
        if let (Some(installed), Some(catalog)) = (&self.installed, &mut self.catalog)
            && catalog
                .path
                .first()
                .is_some_and(|next| next.name == installed.bundle.name)
        {
            catalog.path.remove(0);
        }
    }

    fn note_staying(&mut self, why: Staying) {
        self.follows_soon = why == Staying::Unready;
        if let Some(catalog) = &mut self.catalog {
            catalog.waiting_for_approval = why == Staying::Unapproved;
        }
    }

    /// What is known of the next revision while its bundle was not read: of the first one, what the catalog says.
    pub(super) fn awaited(&self) -> NextRevision {
        let catalog = self.catalog.as_ref();
        let catalog = catalog.filter(|catalog| catalog.waiting_for_approval && self.installed.is_none());
        let first = catalog.and_then(|catalog| catalog.path.first());
        NextRevision {
            name: first.map(|first| first.name.clone()),
            version: first.map(|first| first.version.clone()),
            ..NextRevision::default()
        }
    }

    /// What is to be done so that the next bundle is installed; `None` where nothing waits for that.
    pub(super) fn approval_wanted(&self, deployment: &str) -> Option<String> {
        let catalog = self
            .catalog
            .as_ref()
            .filter(|catalog| catalog.waiting_for_approval)?;
        approval_command(deployment, catalog)
    }
}

fn annotated(deployment: &BundleDeployment) -> Option<&str> {
    let annotations = deployment.metadata.annotations.as_ref()?;
    annotations.get(names::APPROVE).map(String::as_str)
}

fn image_of(source: &CatalogSource, image: String) -> ImageSource {
    ImageSource {
        reference: image,
        pull_secret: source.pull_secret.clone(),
    }
}

/// Refuses a package that is not the one that is installed.
fn check_package(source: &CatalogSource, installed: Option<&InstalledRevision>) -> Result<(), Halt> {
    let Some(other) = installed.filter(|installed| installed.bundle.package != source.package) else {
        return Ok(());
    };
    let message = format!(
        "spec.source.catalog.package is {}, but package {} is installed: correct it, or create another BundleDeployment",
        source.package, other.bundle.package
    );
    Err(refused("OtherPackage", message))
}

/// Refuses an image that holds another bundle than the catalog says: no path leads to that.
fn check_identity(source: &CatalogSource, edge: &UpgradeEdge, bundle: &BundleStatus) -> Result<(), Halt> {
    let named = (&source.package, &edge.bundle, &edge.version);
    if named == (&bundle.package, &bundle.name, &bundle.version) {
        return Ok(());
    }
    let message = format!(
        "the catalog names {} for {} {} of package {}, but the image contains {} {} of package {}: ask the maintainer of the catalog to correct it",
        edge.image, edge.bundle, edge.version, source.package, bundle.name, bundle.version, bundle.package
    );
    Err(refused("CatalogMismatch", shortened(tidied(&message), LONGEST)))
}

fn resolve(
    package: &CatalogPackage,
    source: &CatalogSource,
    wanted: Option<&VersionConstraint>,
    installed: Option<&InstalledRevision>,
) -> Result<UpgradePath, Halt> {
    let release = |installed: &InstalledRevision| {
        let version = &installed.bundle.version;
        Version::parse(version).ok_or_else(|| {
            let message = format!(
                "the installed version {version} is not a semantic version, so no bundle of a catalog can follow it: change spec.source"
            );
            refused("UpgradePathMissing", message)
        })
    };
    let version = installed.map(release).transpose()?;
    let resolved = package.resolve(&UpgradeRequest {
        channel: source.channel.as_deref(),
        version: wanted,
        installed: installed
            .zip(version)
            .map(|(installed, version)| InstalledRelease {
                name: &installed.bundle.name,
                version,
            }),
    });
    resolved.map_err(|error| {
        let (reason, advice) = match &error {
            ResolutionError::Channel { .. } => ("ChannelMissing", "correct spec.source.catalog.channel"),
            ResolutionError::Version { .. } => ("VersionMissing", "correct spec.source.catalog.version"),
            ResolutionError::Unreachable { .. } => (
                "UpgradePathMissing",
                "change spec.source.catalog.version or channel",
            ),
        };
        let said = shortened(tidied(&error.to_string()), LONGEST);
        refused(reason, format!("{said}; {advice}"))
    })
}
