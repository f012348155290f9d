//! What an install takes from a catalog.

use std::path::Path;

use anyhow::anyhow;
use catalog::{InstalledRelease, UpgradePath, UpgradeRequest};
use clap::ValueEnum;
use version_range::{Version, VersionConstraint};
use windlass_api::{CatalogSource, UpgradeApproval};
use windlass_object::text::OneLine;

use super::{path, source::SourceArgs};
use crate::commands::bundle_images::{RegistryArgs, reference};

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

    /// Have the operator follow the channel from now on, which takes a catalog in an image: it pulls that itself, with --pull-secret. With
    /// =manual each bundle waits for `windlass catalog approve`, and this command does not wait.
    #[arg(
        long,
        value_enum,
        value_name = "APPROVAL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "automatic",
        requires = "catalog",
        conflicts_with_all = ["dry_run", "adopt_from"]
    )]
    follow: Option<ApprovalArg>,
}

/// Whether bundles of a catalog wait for an approval.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ApprovalArg {
    /// They do not.
    Automatic,
    /// Each does.
    Manual,
}

// === impl CatalogSelection ===

impl CatalogSelection {
    /// Whether a catalog was named.
    pub(in crate::commands) fn is_there(&self) -> bool {
        self.catalog.is_some()
    }

    /// What the operator is to follow of a package; `None` if it is not to.
    ///
    /// # Errors
    ///
    /// When the catalog is not an image.
    pub(in crate::commands) fn followed(
        &self,
        package: &str,
        pull_secret: Option<&str>,
    ) -> anyhow::Result<Option<CatalogSource>> {
        let (Some(approval), Some(catalog)) = (self.follow, &self.catalog) else {
            return Ok(None);
        };
        let image = reference(catalog).ok().filter(|_| !Path::new(catalog).exists());
        let image = image.ok_or_else(|| {
            anyhow!(
                "{} is not an image, and the operator reads no folder of this machine: leave out --follow",
                OneLine(catalog)
            )
        })?;
        Ok(Some(CatalogSource {
            reference: image.to_string(),
            pull_secret: pull_secret.map(str::to_owned),
            package: package.to_owned(),
            channel: self.channel.clone(),
            version: self.version.as_ref().map(|version| version.as_str().to_owned()),
            approval: match approval {
                ApprovalArg::Automatic => UpgradeApproval::Automatic,
                ApprovalArg::Manual => UpgradeApproval::Manual,
            },
        }))
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
