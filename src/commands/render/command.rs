//! The arguments, and what is rendered.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context;
use clap::ValueEnum;
use windlass_bundle::render;

use super::output::Destination;
use crate::commands::bundle::InstallArgs;

/// Prints what installing a bundle would apply, as YAML.
///
/// Checks the bundle first. With a running operator, which issues the certificates, the bundle can be installed with
/// `windlass render … | kubectl apply --server-side -f -`.
#[derive(Debug, clap::Args)]
pub(in crate::commands) struct Args {
    #[command(flatten)]
    install: InstallArgs,

    /// Certificate provider of the webhooks.
    #[arg(long, value_enum, default_value_t = Certificates::Windlass)]
    certificates: Certificates,

    /// Write one file per object to DIR, which must be empty or absent.
    #[arg(short = 'o', long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Certificates {
    /// Windlass: ServingCertificates, mounted where operators expect them.
    Windlass,
    /// None: what OLM v1 renders without a certificate provider.
    None,
}

// === impl Args ===

impl Args {
    /// Whether the bundle can be anywhere.
    ///
    /// # Errors
    ///
    /// When it is the name of a package.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.install.bundle.without_catalog()
    }

    /// Renders the bundle.
    ///
    /// # Errors
    ///
    /// When the output cannot be written; what is wrong with the input is printed and in the exit code.
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        // Where nothing can be written, nothing else matters.
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
