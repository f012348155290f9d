//! From an image that was pulled, or is recorded, to a plan.

use std::time::Instant;

use oci::ImageReference;
use windlass_api::{BundleDeployment, ImageSource};
use windlass_bundle::Files;
use windlass_object::text::{shortened, tidied};

use super::{error::NamedBy, puller::WantedImage};
use crate::{
    bundle_deployment::{
        halt::Halt,
        loading::{bundle_digest, refused},
        memory::{LoadOutcome, PullFailure, PullState},
        reconciler::BundleReconciler,
        record_config_maps::identity,
    },
    install::{revision::InstallSettings, status::Milestone},
};

/// The most bytes of what a catalog calls an image.
const LONGEST: usize = 1024;

/// The reason while nothing is known of an image.
pub(in crate::bundle_deployment) const PULLING: &str = "SourcePulling";

impl BundleReconciler {
    /// What comes of the bundle in an image, as it was pulled last or is recorded.
    pub(in crate::bundle_deployment) async fn load_image(
        &self,
        deployment: &BundleDeployment,
        source: &ImageSource,
        settings: &InstallSettings,
    ) -> Result<LoadOutcome, Halt> {
        let name = identity(deployment).0;
        let by = match &deployment.spec.source.catalog {
            Some(_) => NamedBy::CatalogEntry,
            None => NamedBy::Image,
        };
        let reference: ImageReference = source.reference.parse().map_err(|error| match by {
            NamedBy::CatalogEntry => {
                let named = shortened(tidied(&source.reference), LONGEST);
                let message =
                    format!("the catalog names the image {named}: {error}; ask the maintainer of the catalog to correct it");
                refused("CatalogInvalid", message)
            }
            _ => refused("SourceInvalid", format!("spec.source.image.ref: {error}")),
        })?;
        let (state, is_due) = self.images.pulls.look(name, source, Instant::now());
        if is_due {
            let ledger = match self.ledger(deployment).await {
                Ok(ledger) => ledger,
                Err(halt) => {
                    // Nobody looks; the next reconciliation is to.
                    self.images.pulls.forget(name);
                    return Err(halt);
                }
            };
            let recorded = ledger.records().iter().filter_map(|record| {
                let image = record.image.clone()?;
                Some((image, record.bundle.digest.clone()))
            });
            self.images.clone().start(WantedImage {
                name: name.to_owned(),
                source: source.clone(),
                reference,
                by,
                recorded: recorded.collect(),
            });
        }
        let waiting = || {
            let message = format!("pulling {}", source.reference);
            Halt::waiting(Milestone::Accepted, PULLING, message)
        };
        let found = match state {
            PullState::Pulling => return Err(waiting()),
            PullState::Failed(failure) => return Err(failure.into()),
            PullState::Found(found) => found,
        };
        if let Some(outcome) = self.loader.find(name, &found.digest, settings) {
            return Ok(outcome);
        }
        let files = match found.files {
            Some(files) => Some(files),
            None => self.recorded_files(deployment, &found.digest).await?,
        };
        let Some(files) = files else {
            self.images.pulls.repeat(name, Instant::now());
            return Err(waiting());
        };
        Ok(self.planned(name, files, found.digest, settings.clone()).await?)
    }

    /// The files with this digest, if the bytes of a recorded revision are these.
    pub(in crate::bundle_deployment) async fn recorded_files(
        &self,
        deployment: &BundleDeployment,
        wanted: &str,
    ) -> Result<Option<Files>, Halt> {
        let ledger = self.ledger(deployment).await?;
        for record in ledger.records().iter().rev() {
            if record.bundle.digest != wanted {
                continue;
            }
            match self.read_config_maps(&record.config_maps).await {
                Ok((files, _)) if bundle_digest(&files) == wanted => return Ok(Some(files)),
                // Whatever has become of them.
                Ok(_) | Err(Halt::Gate(_) | Halt::Later(..)) => {}
                Err(halt) => return Err(halt),
            }
        }
        Ok(None)
    }
}

impl From<PullFailure> for Halt {
    fn from(failure: PullFailure) -> Self {
        let PullFailure { reason, message, .. } = failure;
        match failure.is_transient {
            true => Self::waiting(Milestone::Accepted, reason, message),
            false => refused(reason, message),
        }
    }
}
