//! Installs along an upgrade path of a catalog.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use oci::ImageReference;
use serde_json::Value;
use version_range::Version;
use windlass_api::UpgradeApproval;
use windlass_cluster::kinds;
use windlass_object::object;

use super::{
    super::{arguments, bundle_images, bundle_location::BundleLocation, cluster::explain_error},
    command::Args,
};

impl Args {
    /// Installs each bundle on the path once the previous one is ready, or lets the operator follow the
    /// channel.
    ///
    /// # Errors
    ///
    /// When there is no path, or the cluster rejects a bundle on it: the previous one stays installed.
    pub(super) async fn install_from_catalog(mut self) -> anyhow::Result<ExitCode> {
        let BundleLocation::Package(package) = self.install.bundle.clone() else {
            bail!("with --catalog, BUNDLE is a package name: list the packages with `windlass catalog list`");
        };
        let name = self.name.clone().unwrap_or_else(|| package.clone());
        let name = arguments::bundle_deployment(&name).map_err(anyhow::Error::msg)?;
        let installed = self.installed(&name, &package).await?;
        let registry = &self.install.registry;
        let (path, shown) = self.catalog.path(&package, installed.as_ref(), registry).await?;
        eprint!("{shown}");
        if let Some(source) = self
            .catalog
            .catalog_source(&package, self.pull_secret.as_deref())?
        {
            self.waiting.wait &= source.approval == UpgradeApproval::Automatic;
            self.name = Some(name);
            self.followed = Some(source);
            return self.install_bundle().await;
        }
        if path.edges.len() > 1 && !self.waiting.wait && !self.dry_run {
            bail!("each bundle on the path waits for the previous one: omit --wait=false");
        }
        self.name = Some(name);
        for edge in &path.edges {
            let image = self.resolve_digest(&edge.image).await?;
            self.install.bundle = BundleLocation::Image(image);
            let code = self.install_bundle().await?;
            // Later paths depend on the installed bundle.
            if code != ExitCode::SUCCESS || self.dry_run {
                return Ok(code);
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the name and version of the installed bundle.
    async fn installed(&self, name: &str, package: &str) -> anyhow::Result<Option<(String, Version)>> {
        let key = kinds::BUNDLE_DEPLOYMENT.object(None, name);
        let before = self
            .cluster
            .connect()
            .await?
            .read(&key)
            .await
            .map_err(explain_error)?;
        let text = |field: &str| {
            let before: &Value = before.as_ref()?;
            object::text(before, &format!("/status/installed/{field}"))
        };
        let Some(version) = text("version") else {
            return Ok(None);
        };
        match text("package") {
            Some(other) if other != package => {
                bail!("{key} has the package {other} installed: specify another name with --name")
            }
            _ => {}
        }
        let parsed = Version::parse(version);
        let parsed =
            parsed.with_context(|| format!("the version {version} of {key} is not a semantic version"))?;
        Ok(Some((text("name").unwrap_or_default().to_owned(), parsed)))
    }

    /// Returns an image of the catalog by digest: a moved tag would be an upgrade that is not on the path.
    async fn resolve_digest(&self, image: &str) -> anyhow::Result<ImageReference> {
        let image = bundle_images::reference(image).map_err(anyhow::Error::msg)?;
        let registry = &self.install.registry;
        let credentials = registry.credentials()?;
        let pinned = registry.client()?.pin(&image, &credentials).await;
        pinned.map_err(|error| bundle_images::explain_registry_error("pull", &image, &credentials, &error))
    }
}
