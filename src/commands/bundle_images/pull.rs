//! `windlass bundle pull`.

use std::{path::PathBuf, process::ExitCode};

use oci::ImageReference;

use super::{
    folder,
    registry::{RegistryArgs, reference},
};

/// Writes the bundle in an image into a directory, without checking it: use `windlass check` for that.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Image with its registry, by tag or digest.
    #[arg(value_parser = reference)]
    image: ImageReference,

    /// Directory to write, empty or new.
    folder: PathBuf,

    #[command(flatten)]
    registry: RegistryArgs,
}

impl Args {
    /// Pulls the bundle, and prints the image with its digest.
    ///
    /// # Errors
    ///
    /// When it cannot be pulled or written; the directory is unchanged then.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        // Fail before the download if the directory cannot be written.
        folder::ensure_empty(&self.folder)?;
        let pulled = self.registry.pull(&self.image).await?;
        folder::write(&self.folder, &pulled.files)?;
        println!("{}", pulled.image);
        Ok(ExitCode::SUCCESS)
    }
}
