//! The arguments of `windlass render`, and the rendering.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context;
use clap::ValueEnum;
use windlass_bundle::render;

use super::output::Destination;
use crate::commands::bundle::InstallArgs;

const AFTER_HELP: &str =
    "Exits 1 if the bundle has problems. The output does not include the namespace, and CRDs are not
converted until the operator of the bundle serves: use windlass install for clusters.

Example:
  windlass render quay.io/example/widgets-bundle:v1.2.0 --namespace widgets --output-dir rendered";

/// Prints the objects that an install of a bundle applies, as YAML.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(in crate::commands) struct Args {
    #[command(flatten)]
    install: InstallArgs,

    /// Certificates of webhooks: by Windlass, or none as OLM v1.
    #[arg(long, value_enum, value_name = "PROVIDER", hide_possible_values = true, default_value_t = Certificates::Windlass)]
    certificates: Certificates,

    /// Write one file per object to DIR, empty or new.
    #[arg(short = 'o', long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Certificates {
    /// Windlass: ServingCertificates, mounted where operators expect them.
    Windlass,
    /// None: the output of OLM v1 without a certificate provider.
    None,
}

impl Args {
    /// Checks that the bundle can be located.
    ///
    /// # Errors
    ///
    /// When it is a package name.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.install.bundle.ensure_not_package()
    }

    /// Renders the bundle.
    ///
    /// # Errors
    ///
    /// When the output cannot be written; problems of the input are printed and set the exit code.
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        // Fail before the download if the output cannot be written.
        let output = Destination::new(self.output_dir.clone())?;
        let certificates = match self.certificates {
            Certificates::Windlass => render::CertificateProvider::default(),
            Certificates::None => render::CertificateProvider::None,
        };
        let read = self.install.read().await?;
        let rendered = tokio::task::spawn_blocking(move || {
            let checked = read.and_then(|read| self.install.check(&read.bundle, certificates));
            match checked {
                Ok(checked) => {
                    output.write(&checked.rendered.manifests())?;
                    Ok(ExitCode::SUCCESS)
                }
                Err(lines) => {
                    for line in lines {
                        eprintln!("{line}");
                    }
                    Ok(ExitCode::FAILURE)
                }
            }
        });
        rendered.await.context("rendering the bundle")?
    }
}
