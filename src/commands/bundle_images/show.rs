//! `windlass bundle show`.

use std::process::ExitCode;

use serde::Serialize;
use windlass_api::BundleStatus;
use windlass_bundle::{Files, check};
use windlass_object::{Problem, text::OneLine};
use windlass_operator::bundle_deployment::bundle_digest;

use super::{
    command::refuse,
    registry::{PulledFiles, RegistryArgs},
};
use crate::{
    commands::{
        bundle::load,
        bundle_location::{self, BundleLocation, without_catalog},
    },
    terminal::{Format, print},
};

/// Shows what a bundle is: its package, name, version and digest, which spec.source.digest can pin.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Image with its registry; or a bundle of this machine, as a directory, a .tar.gz, or - for such an archive from stdin.
    #[arg(value_parser = bundle_location::parser())]
    bundle: BundleLocation,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,

    #[command(flatten)]
    registry: RegistryArgs,
}

/// A bundle, as programs get it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownBundle {
    #[serde(flatten)]
    bundle: BundleStatus,
    /// The image that it is in, by its digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<String>,
}

// === impl Args ===

impl Args {
    /// Prints what the bundle is.
    ///
    /// # Errors
    ///
    /// When it cannot be pulled; what is wrong with it is printed and in the exit code.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let (files, image) = match &self.bundle {
            BundleLocation::Image(image) => {
                let PulledFiles { image, files } = self.registry.pull(image).await?;
                (Ok(files), Some(image))
            }
            BundleLocation::Local(path) => (load(path), None),
            BundleLocation::Package(package) => return Err(without_catalog(package)),
        };
        match files.and_then(|files| shown(&files, image)) {
            Ok(bundle) => {
                print(self.output, &bundle, || lines(&bundle))?;
                Ok(ExitCode::SUCCESS)
            }
            Err(problems) => Ok(refuse(problems)),
        }
    }
}

fn shown(files: &Files, image: Option<String>) -> Result<ShownBundle, Vec<Problem>> {
    let bundle = check::parse(files)?;
    let csv = bundle.csv();
    Ok(ShownBundle {
        bundle: BundleStatus {
            package: bundle.package.clone(),
            name: csv.name().to_owned(),
            version: csv.version().to_owned(),
            digest: bundle_digest(files),
        },
        image,
    })
}

/// A line for each field; digests are not cut, since they are copied.
fn lines(shown: &ShownBundle) -> String {
    let BundleStatus {
        package,
        name,
        version,
        digest,
    } = &shown.bundle;
    let fields = [
        ("Package", Some(package)),
        ("Name", Some(name)),
        ("Version", Some(version)),
        ("Digest", Some(digest)),
        ("Image", shown.image.as_ref()),
    ];
    let lines = fields.into_iter().filter_map(|(field, value)| {
        let field = format!("{field}:");
        Some(format!("{field:<10}{}\n", OneLine(value?)))
    });
    lines.collect()
}
