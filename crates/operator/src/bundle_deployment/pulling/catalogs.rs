//! Catalogs: read when their tag leads elsewhere, one at a time and once for all who follow one.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Instant,
};

use catalog::{CatalogLimits, CatalogPackage, CatalogReader, ReadCatalog};
use oci::{ContentDigest, ImageReference};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use windlass_api::{CatalogSource, ImageSource};
use windlass_cluster::kinds;
use windlass_object::{
    object,
    text::{Listing, shortened, tidied},
};

use super::{
    catalog_image::{LARGEST_CATALOG, read_catalog},
    error::{NamedBy, PullError},
    puller::ImagePuller,
};
use crate::bundle_deployment::memory::{PullFailure, PulledContent};

/// How much of a catalog is held: of packages that nobody follows, nothing is kept.
const LIMITS: CatalogLimits = CatalogLimits {
    blob: 32 << 20,
    kept: 16 << 20,
    problems: 100,
};

/// How many catalogs are kept for others who may follow them, beside those that are followed.
const SHARED: usize = 4;

/// How a message lists what is wrong with a package.
const PROBLEMS: Listing = Listing {
    most: 5,
    separator: "; ",
    way_to_rest: ": to see all, run windlass catalog list",
};

/// The most bytes of what is said to be wrong.
const LONGEST: usize = 2048;

/// The image of a catalog, and the package that is wanted of it: what decides whether it is looked at again.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::bundle_deployment) struct CatalogImage {
    pub(in crate::bundle_deployment) image: ImageSource,
    pub(in crate::bundle_deployment) package: String,
}

/// A package of a catalog that was read.
#[derive(Clone, Debug)]
pub(in crate::bundle_deployment) struct FollowedCatalog {
    /// The digest of the image of the catalog.
    pub(in crate::bundle_deployment) digest: ContentDigest,
    pub(in crate::bundle_deployment) package: Arc<CatalogPackage>,
}

/// What a catalog has of a package.
#[derive(Clone, Debug)]
enum PackageFinding {
    Sound(Arc<CatalogPackage>),
    Missing,
    /// What is wrong with it.
    Invalid(String),
}

/// The catalogs that were read last, of each the packages that were followed then.
pub(super) struct SharedCatalogs {
    /// By their images, and what was shown for these.
    known: Mutex<VecDeque<(String, BTreeMap<String, PackageFinding>)>>,
    /// One catalog is read at a time.
    slot: Semaphore,
}

impl CatalogImage {
    pub(in crate::bundle_deployment) fn of(source: &CatalogSource) -> Self {
        Self {
            image: ImageSource {
                reference: source.reference.clone(),
                pull_secret: source.pull_secret.clone(),
            },
            package: source.package.clone(),
        }
    }
}

impl PulledContent for FollowedCatalog {
    fn give(&mut self) -> Self {
        self.clone()
    }
}

impl ImagePuller {
    /// Looks at a catalog for the BundleDeployment `name`, and has that reconciled then, and again when it is to be looked at anew.
    pub(in crate::bundle_deployment) fn start_catalog(
        self: Arc<Self>,
        name: String,
        wanted: CatalogImage,
        reference: ImageReference,
    ) {
        tokio::spawn(async move {
            let outcome = self.follow(&name, &wanted, &reference).await;
            let outcome = outcome.map_err(|error| PullFailure::of(&error, NamedBy::Catalog));
            let is_by_digest = reference.digest.is_some();
            let now = Instant::now();
            let next = self.catalogs.finish(&name, &wanted, is_by_digest, outcome, now);
            self.tell(name, next).await;
        });
    }

    /// What a catalog has of a package. What was found before is not read again while the tag leads there.
    ///
    /// # Errors
    ///
    /// Why it cannot be read, or what is wrong with the package.
    pub(super) async fn follow(
        &self,
        name: &str,
        wanted: &CatalogImage,
        reference: &ImageReference,
    ) -> Result<FollowedCatalog, PullError> {
        let CatalogImage { image, package } = wanted;
        let (client, credentials) = self.access(image, Some(LARGEST_CATALOG)).await?;
        let failed = |cause| PullError::registry(&image.reference, reference, cause, &credentials);
        let pinned = client.pin(reference, &credentials).await.map_err(failed)?;
        let digest = pinned.digest.clone();
        let known = self.catalogs.find(name, wanted, Clone::clone);
        if let Some(known) = known.filter(|known| Some(&known.digest) == digest.as_ref()) {
            return Ok(known);
        }
        // Never closed.
        let _slot = self.shared.slot.acquire().await;
        let by_digest = pinned.to_string();
        // Who may not read the image is not told either.
        let key = format!("{by_digest} {}", image.pull_secret.as_deref().unwrap_or_default());
        let found = match self.shared.find(&key, package) {
            Some(found) => found,
            None => {
                let packages = self.followed_packages(package);
                let reader = packages
                    .iter()
                    .fold(CatalogReader::new(LIMITS), |reader, package| reader.only(package));
                let opened = client.open(&pinned, &credentials).await.map_err(failed)?;
                let read = read_catalog(opened, reader).await;
                let read = read.map_err(|error| PullError::Catalog(by_digest.clone(), error))?;
                self.shared.keep(key, findings(read.read, packages), package)
            }
        };
        match (found, digest) {
            (PackageFinding::Sound(package), Some(digest)) => Ok(FollowedCatalog { digest, package }),
            (PackageFinding::Invalid(problems), _) => Err(PullError::CatalogInvalid(format!(
                "package {package} of the catalog {by_digest}: {problems}"
            ))),
            _ => Err(PullError::PackageMissing {
                catalog: by_digest,
                package: package.clone(),
            }),
        }
    }

    /// The packages that any BundleDeployment follows: one reading of a catalog is for all.
    fn followed_packages(&self, own: &str) -> BTreeSet<String> {
        let deployments = self.index.objects(&kinds::BUNDLE_DEPLOYMENT);
        let followed = deployments
            .iter()
            .filter_map(|deployment| object::text(deployment, "/spec/source/catalog/package"));
        followed.chain([own]).map(str::to_owned).collect()
    }
}

/// What was read, package by package.
fn findings(mut read: ReadCatalog, packages: BTreeSet<String>) -> BTreeMap<String, PackageFinding> {
    let mut finding = |package: &str| {
        let is_about = |about: &Option<String>| about.as_deref().is_none_or(|about| about == package);
        let problems = read.problems.iter().filter(|problem| is_about(&problem.package));
        let problems: Vec<_> = problems.map(ToString::to_string).collect();
        if !problems.is_empty() {
            // Names in it are those of strangers.
            return PackageFinding::Invalid(shortened(tidied(&PROBLEMS.summarize(&problems)), LONGEST));
        }
        match read.catalog.packages.remove(package) {
            Some(package) => PackageFinding::Sound(Arc::new(package)),
            None => PackageFinding::Missing,
        }
    };
    packages
        .into_iter()
        .map(|package| {
            let found = finding(&package);
            (package, found)
        })
        .collect()
}

impl SharedCatalogs {
    fn find(&self, key: &str, package: &str) -> Option<PackageFinding> {
        let known = self.known.lock();
        let (_, packages) = known.iter().find(|(known, _)| known == key)?;
        packages.get(package).cloned()
    }

    /// Keeps what was read, and gives what it has of one package.
    fn keep(&self, key: String, findings: BTreeMap<String, PackageFinding>, package: &str) -> PackageFinding {
        let found = findings.get(package).cloned();
        let mut known = self.known.lock();
        known.retain(|(other, _)| *other != key);
        known.push_back((key, findings));
        if known.len() > SHARED {
            known.pop_front();
        }
        found.unwrap_or(PackageFinding::Missing)
    }
}

impl Default for SharedCatalogs {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
            slot: Semaphore::new(1),
        }
    }
}
