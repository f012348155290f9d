//! The catalog of a command.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, anyhow, bail};
use catalog::{CatalogPackage, CatalogReader, ReadCatalog};
use windlass_object::text::OneLine;
use windlass_operator::bundle_deployment::{CatalogInImage, LARGEST_CATALOG, read_catalog};

use super::cache;
use crate::commands::{
    bundle_images::{RegistryArgs, reference},
    documents,
};

/// Selects the catalog.
#[derive(Debug, clap::Args)]
pub(super) struct SourceArgs {
    /// Catalog: a folder with its files, or an image with its registry.
    #[arg(long, value_name = "FOLDER|IMAGE")]
    pub(super) catalog: String,

    #[command(flatten)]
    pub(super) registry: RegistryArgs,
}

/// The file by which `opm` leaves out files of a catalog.
const INDEX_IGNORE: &str = ".indexignore";

impl SourceArgs {
    /// Reads the whole catalog.
    ///
    /// # Errors
    ///
    /// When the catalog cannot be read, or is empty; problems of its files are in the returned value.
    pub(super) async fn read(&self) -> anyhow::Result<ReadCatalog> {
        let read = self.read_with(CatalogReader::default()).await?;
        if read.catalog.packages.is_empty() && read.problems.is_empty() {
            bail!("{} has no packages: it is not a catalog", self.catalog);
        }
        Ok(read)
    }

    /// Reads one package, which must have no problems.
    ///
    /// # Errors
    ///
    /// When the package does not exist, or has problems.
    pub(super) async fn package(&self, name: &str) -> anyhow::Result<CatalogPackage> {
        let mut read = self.read_with(CatalogReader::default().only(name)).await?;
        let is_about = |package: &Option<String>| package.as_deref().is_none_or(|package| package == name);
        read.problems.retain(|problem| is_about(&problem.package));
        let found = read.catalog.packages.remove(name);
        if print_problems(&read) == ExitCode::SUCCESS {
            let missing = "list the packages with `windlass catalog list`";
            return found.ok_or_else(|| anyhow!("package {name} not found in {}: {missing}", self.catalog));
        }
        bail!(
            "package {name} of {} cannot be used until its catalog is repaired",
            self.catalog
        )
    }

    async fn read_with(&self, reader: CatalogReader) -> anyhow::Result<ReadCatalog> {
        let folder = PathBuf::from(&self.catalog);
        match reference(&self.catalog) {
            Ok(image) if !folder.exists() => self.pull(&image).await,
            _ => tokio::task::spawn_blocking(move || read_folder(&folder, reader)).await?,
        }
    }

    /// Reads all packages of an image: the cached data is small, and the next command may need another
    /// package.
    async fn pull(&self, image: &oci::ImageReference) -> anyhow::Result<ReadCatalog> {
        let client = self.registry.client_for(LARGEST_CATALOG)?;
        let credentials = self.registry.credentials()?;
        let cannot = || format!("cannot pull {image}");
        let pinned = client.pin(image, &credentials).await.with_context(cannot)?;
        if let Some(cached) = cache::find(&pinned) {
            return Ok(cached);
        }
        let opened = client.open(&pinned, &credentials).await.with_context(cannot)?;
        let CatalogInImage { folder, read } = read_catalog(opened, CatalogReader::default())
            .await
            .with_context(cannot)?;
        if read.catalog.packages.is_empty() && read.problems.is_empty() {
            bail!("cannot pull {image}: it has no packages in /{folder}: it is not a catalog");
        }
        cache::store(&pinned, &read);
        Ok(read)
    }
}

fn read_folder(folder: &Path, mut reader: CatalogReader) -> anyhow::Result<ReadCatalog> {
    if folder.join(INDEX_IGNORE).exists() {
        let path = folder.join(INDEX_IGNORE);
        eprintln!("{} is ignored: the files that it lists are read", path.display());
    }
    for path in documents::below(folder, true)? {
        let file = File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
        let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
        reader
            .read(&name, file)
            .with_context(|| format!("cannot read {}", folder.display()))?;
    }
    Ok(reader.finish())
}

/// Prints the problems of a catalog, and returns a failure if there are any.
pub(super) fn print_problems(read: &ReadCatalog) -> ExitCode {
    for problem in &read.problems {
        eprintln!("{}", OneLine(&problem.to_string()));
    }
    ExitCode::from(u8::from(!read.problems.is_empty()))
}
