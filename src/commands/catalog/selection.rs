//! The bundle that an install takes from a catalog.

use std::path::Path;

use anyhow::anyhow;
use catalog::{InstalledRelease, UpgradePath, UpgradeRequest};
use clap::ValueEnum;
use version_range::{Version, VersionConstraint};
use windlass_api::{CatalogSource, UpgradeApproval};
use windlass_object::text::OneLine;

use super::{path, source::SourceArgs};
use crate::commands::bundle_images::{RegistryArgs, reference};

/// Selects a bundle of a catalog.
#[derive(Debug, clap::Args)]
pub(in crate::commands) struct CatalogSelection {
    /// Catalog with the package BUNDLE and its upgrade path.
    #[arg(long, value_name = "FOLDER|IMAGE", help_heading = "Catalog")]
    catalog: Option<String>,

    /// Channel to follow [default: the package's default].
    #[arg(long, requires = "catalog", help_heading = "Catalog")]
    channel: Option<String>,

    /// Versions, such as '>=1.2 <2' or ~1.2 [default: all].
    #[arg(long, value_name = "RANGE", requires = "catalog", value_parser = VersionConstraint::parse, help_heading = "Catalog")]
    version: Option<VersionConstraint>,

    /// Keep upgrading along the channel: automatic (default) or manual.
    #[arg(
        long,
        value_enum,
        value_name = "APPROVAL",
        hide_possible_values = true,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "automatic",
        requires = "catalog",
        conflicts_with_all = ["dry_run", "adopt_from"], help_heading = "Catalog")]
    follow: Option<ApprovalArg>,
}

/// Whether the bundles of a followed channel wait for approval.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ApprovalArg {
    /// Upgrades are installed when they appear in the channel.
    Automatic,
    /// Each upgrade waits for `windlass catalog approve`.
    Manual,
}

impl CatalogSelection {
    /// Reports whether a catalog was specified.
    pub(in crate::commands) fn is_set(&self) -> bool {
        self.catalog.is_some()
    }

    /// Returns the channel that the operator follows; `None` without `--follow`.
    ///
    /// # Errors
    ///
    /// When the catalog is not an image.
    pub(in crate::commands) fn catalog_source(
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
                "{} is not an image, and the operator cannot read local folders: omit --follow",
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

    /// Returns the path from the installed bundle, by name and version, to the newest matching one; and the
    /// path as text.
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
