//! `windlass catalog show`.

use std::process::ExitCode;

use catalog::CatalogPackage;
use serde::Serialize;
use windlass_object::text::OneLine;

use super::{list::newest, source::SourceArgs};
use crate::terminal::{Format, Table, print};

/// Shows a package: its description, its channels, and its deprecations.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Package.
    package: String,

    #[command(flatten)]
    source: SourceArgs,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// A package, for structured output.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownPackage {
    name: String,
    description: String,
    default_channel: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecated: Option<String>,
    channels: Vec<ShownChannel>,
}

/// A channel, for structured output.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownChannel {
    name: String,
    /// The newest version.
    version: String,
    /// The bundle that no other bundle replaces or skips.
    head: String,
    bundles: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecated: Option<String>,
}

impl Args {
    /// Prints the package.
    ///
    /// # Errors
    ///
    /// When the package cannot be read, or has problems.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let shown = shown(&self.source.package(&self.package).await?);
        print(self.output, &shown, || text(&shown))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn shown(package: &CatalogPackage) -> ShownPackage {
    let channels = package.channels.iter().map(|(name, channel)| ShownChannel {
        name: name.clone(),
        version: newest(package, name),
        head: channel.heads().join(", "),
        bundles: channel.entries.len(),
        deprecated: package.deprecations.channels.get(name).cloned(),
    });
    ShownPackage {
        name: package.name.clone(),
        description: package.description.clone(),
        default_channel: package.default_channel.clone(),
        deprecated: package.deprecations.package.clone(),
        channels: channels.collect(),
    }
}

fn text(shown: &ShownPackage) -> String {
    let fields = [
        ("Package", Some(shown.name.as_str())),
        ("Default channel", Some(&shown.default_channel)),
        ("Deprecated", shown.deprecated.as_deref()),
    ];
    let mut text: String = fields
        .into_iter()
        .filter_map(|(field, value)| Some(format!("{:<17}{}\n", format!("{field}:"), OneLine(value?))))
        .collect();
    if !shown.description.is_empty() {
        text += "\n";
        text.extend(
            shown
                .description
                .lines()
                .map(|line| format!("{}\n", OneLine(line))),
        );
    }
    let mut table = Table::new(&["CHANNEL", "VERSION", "HEAD", "BUNDLES", "DEPRECATED"]);
    for channel in &shown.channels {
        let deprecated = channel.deprecated.as_deref().unwrap_or_default();
        table.add([
            &channel.name,
            &channel.version,
            &channel.head,
            &channel.bundles,
            &deprecated,
        ]);
    }
    format!("{text}\n{table}")
}
