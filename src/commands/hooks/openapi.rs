//! `windlass hooks openapi`: the document of all hooks.

use std::process::ExitCode;

use runtime_hooks::Catalog;

use crate::terminal::{Format, print, yaml};

/// Prints the OpenAPI document of Cluster API's hooks: what an extension answers at which paths.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Output format; a table is YAML here.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

// === impl Args ===

impl Args {
    /// Prints it.
    ///
    /// # Errors
    ///
    /// When it cannot be printed.
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let document =
            Catalog::of_cluster_api().openapi("Runtime hooks of Cluster API", env!("CARGO_PKG_VERSION"));
        let text = yaml::document(&document)?;
        print(self.output, &document, || text)?;
        Ok(ExitCode::SUCCESS)
    }
}
