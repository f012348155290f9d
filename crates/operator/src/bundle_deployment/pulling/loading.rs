//! From an image that was pulled, or is recorded, to a plan.

use std::time::Instant;

use oci::ImageReference;
use windlass_api::{BundleDeployment, ImageSource};
use windlass_bundle::Files;

use super::puller::WantedImage;
use crate::{
    bundle_deployment::{
        halt::Halt,
        loading::{bundle_digest, refused},
        memory::{LoadOutcome, PullState},
        reconciler::BundleReconciler,
        record_config_maps::identity,
    },
    install::{revision::InstallSettings, status::Milestone},
};

/// The reason while nothing is known of an image.
pub(in crate::bundle_deployment) const PULLING: &str = "SourcePulling";

// === impl BundleReconciler ===

impl BundleReconciler {
    /// What comes of the bundle in an image, as it was pulled last or is recorded.
    pub(in crate::bundle_deployment) async fn load_image(
        &self,
        deployment: &BundleDeployment,
        source: &ImageSource,
        settings: &InstallSettings,
    ) -> Result<LoadOutcome, Halt> {
        let name = identity(deployment).0;
        let reference: ImageReference = source
            .reference
            .parse()
            .map_err(|error| refused("SourceInvalid", format!("spec.source.image.ref: {error}")))?;
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
                recorded: recorded.collect(),
            });
        }
        let waiting = || {
            let message = format!("pulling {}", source.reference);
            Halt::waiting(Milestone::Accepted, PULLING, message)
        };
        let found = match state {
            PullState::Pulling => return Err(waiting()),
            PullState::Failed(failure) if failure.is_transient => {
                let halt = Halt::waiting(Milestone::Accepted, failure.reason, failure.message);
                return Err(halt);
            }
            PullState::Failed(failure) => return Err(refused(failure.reason, failure.message)),
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
    async fn recorded_files(
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
