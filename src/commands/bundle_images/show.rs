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
        bundle_location::{self, BundleLocation, needs_catalog},
    },
    terminal::{Format, print},
};

/// Shows a bundle's package, name, version, and digest for spec.source.digest.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Image with its registry, or a directory, a .tar.gz, or - for an archive on stdin.
    #[arg(value_parser = bundle_location::parser())]
    bundle: BundleLocation,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,

    #[command(flatten)]
    registry: RegistryArgs,
}

/// A bundle, for structured output.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownBundle {
    #[serde(flatten)]
    bundle: BundleStatus,
    /// The image, with its digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<String>,
}

impl Args {
    /// Prints the bundle.
    ///
    /// # Errors
    ///
    /// When it cannot be pulled; problems are printed and set the exit code.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let (files, image) = match &self.bundle {
            BundleLocation::Image(image) => {
                let PulledFiles { image, files } = self.registry.pull(image).await?;
                (Ok(files), Some(image))
            }
            BundleLocation::Local(path) => (load(path), None),
            BundleLocation::Package(package) => return Err(needs_catalog(package)),
        };
        match files.and_then(|files| describe(&files, image)) {
            Ok(bundle) => {
                print(self.output, &bundle, || lines(&bundle))?;
                Ok(ExitCode::SUCCESS)
            }
            Err(problems) => Ok(refuse(problems)),
        }
    }
}

fn describe(files: &Files, image: Option<String>) -> Result<ShownBundle, Vec<Problem>> {
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

/// Returns a line for each field. Digests are complete, since users copy them.
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
