//! `windlass bundle pull`.

use std::{path::PathBuf, process::ExitCode};

use oci::ImageReference;

use super::{
    folder,
    registry::{RegistryArgs, reference},
};

/// Writes the bundle in an image into a directory. Its files are not checked: `windlass check` does that.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Image, by tag or digest, with its registry.
    #[arg(value_parser = reference)]
    image: ImageReference,

    /// Directory to write, which must be empty or absent.
    folder: PathBuf,

    #[command(flatten)]
    registry: RegistryArgs,
}

// === impl Args ===

impl Args {
    /// Pulls the bundle, and prints the image by its digest.
    ///
    /// # Errors
    ///
    /// When it cannot be pulled or written; the directory is as it was then.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        // Where nothing can be written, nothing else matters.
        folder::ensure_empty(&self.folder)?;
        let pulled = self.registry.pull(&self.image).await?;
        folder::write(&self.folder, &pulled.files)?;
        println!("{}", pulled.image);
        Ok(ExitCode::SUCCESS)
    }
}
