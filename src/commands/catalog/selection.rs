//! What an install takes from a catalog.

use catalog::{InstalledRelease, UpgradePath, UpgradeRequest};
use version_range::{Version, VersionConstraint};

use super::{path, source::SourceArgs};
use crate::commands::bundle_images::RegistryArgs;

/// Which bundle of a catalog is meant.
#[derive(Debug, clap::Args)]
pub(in crate::commands) struct CatalogSelection {
    /// Catalog, a folder with its files or an image with its registry: then BUNDLE is the name of a package in it, and each bundle on
    /// the path from what is installed to the newest that is wanted is installed by its image when the one before is ready. Prints the
    /// path first.
    #[arg(long, value_name = "FOLDER|IMAGE")]
    catalog: Option<String>,

    /// Channel of the catalog to follow [default: the package's default channel].
    #[arg(long, requires = "catalog")]
    channel: Option<String>,

    /// Versions of the catalog that are wanted, for example '>=1.2 <2', 1.2.x or ~1.2 [default: all].
    #[arg(long, value_name = "RANGE", requires = "catalog", value_parser = VersionConstraint::parse)]
    version: Option<VersionConstraint>,
}

// === impl CatalogSelection ===

impl CatalogSelection {
    /// Whether a catalog was named.
    pub(in crate::commands) fn is_there(&self) -> bool {
        self.catalog.is_some()
    }

    /// The path from what is installed, by name and version, to the newest bundle that is wanted; and as people see it.
    ///
    /// # Errors
    ///
    /// When the catalog cannot be read, or there is no path.
    pub(in crate::commands) async fn path(
        &self,
        package: &str,
        installed: Option<&(String, Version)>,
        registry: &RegistryArgs,
    ) -> anyhow::Result<(UpgradePath, String)> {
        let source = SourceArgs {
            catalog: self.catalog.clone().unwrap_or_default(),
            registry: registry.clone(),
        };
        let path = source.package(package).await?.resolve(&UpgradeRequest {
            channel: self.channel.as_deref(),
            version: self.version.as_ref(),
            installed: installed.map(|(name, version)| InstalledRelease {
                name,
                version: version.clone(),
            }),
        })?;
        let shown = path::text(&path);
        Ok((path, shown))
    }
}
