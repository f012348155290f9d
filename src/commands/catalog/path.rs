//! `windlass catalog path`.

use std::process::ExitCode;

use catalog::{InstalledRelease, UpgradePath, UpgradeRequest};
use version_range::{Version, VersionConstraint};
use windlass_object::text::OneLine;

use super::source::SourceArgs;
use crate::terminal::{Format, Table, print};

/// Shows the upgrade path to the newest matching version: its bundles in order, and their images.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Package.
    package: String,

    /// Installed version [default: none].
    #[arg(long, value_name = "VERSION", value_parser = installed_version)]
    from: Option<Version>,

    /// Name of the installed bundle, if its version is no longer in the catalog.
    #[arg(long, value_name = "NAME", requires = "from")]
    from_name: Option<String>,

    /// Channel to follow [default: the package's default channel].
    #[arg(long)]
    channel: Option<String>,

    /// Acceptable versions, such as '>=1.2 <2', 1.2.x or ~1.2 [default: all].
    #[arg(long, value_name = "RANGE", value_parser = VersionConstraint::parse)]
    version: Option<VersionConstraint>,

    #[command(flatten)]
    source: SourceArgs,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

impl Args {
    /// Prints the path.
    ///
    /// # Errors
    ///
    /// When the catalog cannot be read, or there is no path.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let package = self.source.package(&self.package).await?;
        let name_of = |version: &Version| {
            let is_it = |bundle: &catalog::CatalogBundle| {
                bundle
                    .parsed_version()
                    .is_some_and(|other| other.is_same_build(version))
            };
            let found = package.bundles.iter().find(|(_, bundle)| is_it(bundle));
            // The conventional name of a bundle.
            found.map_or_else(
                || format!("{}.v{version}", package.name),
                |(name, _)| name.clone(),
            )
        };
        let installed = self.from.as_ref().map(|version| {
            let name = self.from_name.clone().unwrap_or_else(|| name_of(version));
            (name, version.clone())
        });
        let path = package.resolve(&UpgradeRequest {
            channel: self.channel.as_deref(),
            version: self.version.as_ref(),
            installed: installed.as_ref().map(|(name, version)| InstalledRelease {
                name,
                version: version.clone(),
            }),
        })?;
        print(self.output, &path, || text(&path))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn installed_version(text: &str) -> Result<Version, String> {
    Version::parse(text).ok_or_else(|| "is not a semantic version, for example 1.2.3".to_owned())
}

pub(super) fn text(path: &UpgradePath) -> String {
    if path.edges.is_empty() {
        let from = path.from.as_deref().unwrap_or_default();
        return format!(
            "{} is already the newest matching version that can be reached\n",
            OneLine(from)
        );
    }
    let mut table = Table::new(&["VERSION", "BUNDLE", "BECAUSE", "DEPRECATED"]);
    for (edge, because) in path.explanations() {
        let deprecated = edge.deprecated.as_deref().unwrap_or_default();
        table.add([&edge.version, &edge.bundle, &because, &deprecated]);
    }
    // Images are not cut, since users copy them.
    let images: String = path
        .edges
        .iter()
        .map(|edge| format!("{}\n", OneLine(&edge.image)))
        .collect();
    format!("{table}\n{images}")
}
