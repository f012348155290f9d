//! `windlass catalog list`.

use std::process::ExitCode;

use catalog::{CatalogPackage, FileBasedCatalog};
use serde::Serialize;

use super::source::{SourceArgs, print_problems};
use crate::terminal::{Format, Table, print};

/// Lists the packages of a catalog, or the bundles of one package by channel, newest first.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Package whose bundles are listed.
    package: Option<String>,

    #[command(flatten)]
    source: SourceArgs,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// A package, for structured output.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListedPackage {
    name: String,
    default_channel: String,
    /// The newest version in the default channel.
    version: String,
    channels: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecated: Option<String>,
}

/// A bundle in a channel, for structured output.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedBundle {
    channel: String,
    version: String,
    name: String,
    image: String,
    follows: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecated: Option<String>,
}

impl Args {
    /// Prints the packages or bundles.
    ///
    /// # Errors
    ///
    /// When the catalog cannot be read; its problems are printed and set the exit code.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        if let Some(name) = &self.package {
            let bundles = bundles(&self.source.package(name).await?);
            print(self.output, &bundles, || bundles_table(&bundles).to_string())?;
            return Ok(ExitCode::SUCCESS);
        }
        let read = self.source.read().await?;
        let packages = packages(&read.catalog, |_| true);
        print(self.output, &packages, || packages_table(&packages).to_string())?;
        Ok(print_problems(&read))
    }
}

/// Returns the matching packages of a catalog.
pub(super) fn packages(
    catalog: &FileBasedCatalog,
    is_wanted: impl Fn(&CatalogPackage) -> bool,
) -> Vec<ListedPackage> {
    let wanted = catalog.packages.values().filter(|package| is_wanted(package));
    let listed = wanted.map(|package| ListedPackage {
        name: package.name.clone(),
        default_channel: package.default_channel.clone(),
        version: newest(package, &package.default_channel),
        channels: package.channels.keys().cloned().collect(),
        description: package.description.clone(),
        deprecated: package.deprecations.package.clone(),
    });
    listed.collect()
}

/// Returns the newest version of a channel; empty if it has none.
pub(super) fn newest(package: &CatalogPackage, channel: &str) -> String {
    let newest = package.newest_first(channel).into_iter().next();
    newest
        .map(|(_, bundle)| bundle.version.clone())
        .unwrap_or_default()
}

pub(super) fn packages_table(packages: &[ListedPackage]) -> Table {
    let mut table = Table::new(&["PACKAGE", "VERSION", "DEFAULT CHANNEL", "CHANNELS", "DESCRIPTION"]);
    for package in packages {
        let about = match &package.deprecated {
            Some(message) => format!("Deprecated: {message}"),
            None => package.description.lines().next().unwrap_or_default().to_owned(),
        };
        let channels = package.channels.len();
        table.add([
            &package.name,
            &package.version,
            &package.default_channel,
            &channels,
            &about,
        ]);
    }
    table
}

fn bundles(package: &CatalogPackage) -> Vec<ListedBundle> {
    let mut listed = Vec::new();
    for (channel, entries) in &package.channels {
        for (name, bundle) in package.newest_first(channel) {
            listed.push(ListedBundle {
                channel: channel.clone(),
                version: bundle.version.clone(),
                name: name.to_owned(),
                image: bundle.image.clone(),
                follows: entries
                    .entries
                    .get(name)
                    .map(ToString::to_string)
                    .unwrap_or_default(),
                deprecated: package.deprecations.bundles.get(name).cloned(),
            });
        }
    }
    listed
}

fn bundles_table(bundles: &[ListedBundle]) -> Table {
    let mut table = Table::new(&["CHANNEL", "VERSION", "BUNDLE", "FOLLOWS", "DEPRECATED"]);
    for bundle in bundles {
        let deprecated = bundle.deprecated.as_deref().unwrap_or_default();
        table.add([
            &bundle.channel,
            &bundle.version,
            &bundle.name,
            &bundle.follows,
            &deprecated,
        ]);
    }
    table
}
