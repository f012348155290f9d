//! `windlass hooks openapi`: the OpenAPI document of all hooks.

use std::process::ExitCode;

use runtime_hooks::Catalog;

use crate::terminal::{Format, print, yaml};

/// Prints the OpenAPI document of Cluster API's hooks, for extension authors.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Output format; table is YAML.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let document =
            Catalog::cluster_api().openapi("Runtime hooks of Cluster API", env!("CARGO_PKG_VERSION"));
        let text = yaml::document(&document)?;
        print(self.output, &document, || text)?;
        Ok(ExitCode::SUCCESS)
    }
}
