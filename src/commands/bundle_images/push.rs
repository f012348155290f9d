//! `windlass bundle push`.

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use oci::{ImageReference, PackedImage};
use windlass_bundle::{Bundle, Files, check};

use super::{
    command::refuse,
    registry::{RegistryArgs, explain_registry_error, reference},
};
use crate::commands::bundle::load;

/// Pushes a valid bundle to a registry as an image of one layer; equal bundles make equal images.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Bundle: a directory, a .tar.gz, or - for an archive on stdin.
    bundle: PathBuf,

    /// Image reference to push, with its registry.
    #[arg(value_parser = reference)]
    image: ImageReference,

    #[command(flatten)]
    registry: RegistryArgs,
}

/// Labels of a registry+v1 image ("Bundle image" in the documentation of operator-registry), besides package
/// and channels.
const LABELS: [(&str, &str); 3] = [
    (
        "operators.operatorframework.io.bundle.mediatype.v1",
        "registry+v1",
    ),
    ("operators.operatorframework.io.bundle.manifests.v1", "manifests/"),
    ("operators.operatorframework.io.bundle.metadata.v1", "metadata/"),
];

impl Args {
    /// Pushes the bundle, and prints the image with its digest.
    ///
    /// # Errors
    ///
    /// When it cannot be pushed; problems of the bundle are printed and set the exit code.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let path = self.bundle.clone();
        let packed = tokio::task::spawn_blocking(move || {
            let files = load(&path)?;
            let bundle = check::parse(&files)?;
            Ok(PackedImage::new(&bundle_files(files), &labels(&bundle)))
        });
        let packed = match packed.await.context("reading the bundle")? {
            Ok(packed) => packed.context("packing the bundle")?,
            Err::<_, Vec<windlass_object::Problem>>(problems) => return Ok(refuse(problems)),
        };
        let credentials = self.registry.credentials()?;
        let client = self.registry.client()?;
        let pushed = client.push(&self.image, &credentials, &packed).await;
        let digest =
            pushed.map_err(|error| explain_registry_error("push", &self.image, &credentials, &error))?;
        println!("{}", self.image.with_digest(digest));
        Ok(ExitCode::SUCCESS)
    }
}

fn bundle_files(files: Files) -> Files {
    let is_of_bundle = |path: &str| path.starts_with("manifests/") || path.starts_with("metadata/");
    files.into_iter().filter(|(path, _)| is_of_bundle(path)).collect()
}

fn labels(bundle: &Bundle) -> BTreeMap<String, String> {
    let label = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let channels = bundle.channels.join(",");
    let own = [
        (
            "operators.operatorframework.io.bundle.package.v1",
            bundle.package.as_str(),
        ),
        (
            "operators.operatorframework.io.bundle.channels.v1",
            channels.as_str(),
        ),
    ];
    LABELS.into_iter().chain(own).map(label).collect()
}
