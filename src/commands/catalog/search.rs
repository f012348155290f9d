//! `windlass catalog search`.

use std::process::ExitCode;

use super::{
    list::{packages, packages_table},
    source::{SourceArgs, print_problems},
};
use crate::terminal::{Format, print};

/// Lists the packages whose name or description contains a text, ignoring case.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Text to search for.
    text: String,

    #[command(flatten)]
    source: SourceArgs,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

impl Args {
    /// Prints the matching packages.
    ///
    /// # Errors
    ///
    /// When the catalog cannot be read; its problems are printed and set the exit code.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let read = self.source.read().await?;
        let text = self.text.to_lowercase();
        let contains = |searched: &str| searched.to_lowercase().contains(&text);
        let found = packages(&read.catalog, |package| {
            contains(&package.name) || contains(&package.description)
        });
        print(self.output, &found, || packages_table(&found).to_string())?;
        Ok(print_problems(&read))
    }
}
