//! The catalog that a command is about.

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

/// Which catalog is read.
#[derive(Debug, clap::Args)]
pub(super) struct SourceArgs {
    /// Catalog: a folder with its files, or an image with its registry.
    #[arg(long, value_name = "FOLDER|IMAGE")]
    pub(super) catalog: String,

    #[command(flatten)]
    pub(super) registry: RegistryArgs,
}

/// What `opm` reads beside a catalog to leave files out.
const INDEX_IGNORE: &str = ".indexignore";

// === impl SourceArgs ===

impl SourceArgs {
    /// Reads all of the catalog.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or has nothing in it; what is wrong with its files is in what is returned.
    pub(super) async fn read(&self) -> anyhow::Result<ReadCatalog> {
        let read = self.read_with(CatalogReader::default()).await?;
        if read.catalog.packages.is_empty() && read.problems.is_empty() {
            bail!("{} has no packages: it holds no catalog", self.catalog);
        }
        Ok(read)
    }

    /// Reads one package, of which nothing may be wrong.
    ///
    /// # Errors
    ///
    /// When there is no such package, or something is wrong with it.
    pub(super) async fn package(&self, name: &str) -> anyhow::Result<CatalogPackage> {
        let mut read = self.read_with(CatalogReader::default().only(name)).await?;
        let is_about = |package: &Option<String>| package.as_deref().is_none_or(|package| package == name);
        read.problems.retain(|problem| is_about(&problem.package));
        let found = read.catalog.packages.remove(name);
        if print_problems(&read) == ExitCode::SUCCESS {
            let missing = "see what it has with `windlass catalog list`";
            return found
                .ok_or_else(|| anyhow!("package {name} was not found in {}: {missing}", self.catalog));
        }
        bail!(
            "package {name} of {} cannot be used before its catalog is repaired",
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

    /// Images are read as a whole: what is kept of them is small, and another package may be asked for next.
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
            bail!("cannot pull {image}: it has no packages in /{folder}: it holds no catalog");
        }
        cache::store(&pinned, &read);
        Ok(read)
    }
}

fn read_folder(folder: &Path, mut reader: CatalogReader) -> anyhow::Result<ReadCatalog> {
    if folder.join(INDEX_IGNORE).exists() {
        let path = folder.join(INDEX_IGNORE);
        eprintln!(
            "{} is not obeyed: files that it names are read, too",
            path.display()
        );
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

/// Prints what is wrong with a catalog; it is a failure.
pub(super) fn print_problems(read: &ReadCatalog) -> ExitCode {
    for problem in &read.problems {
        eprintln!("{}", OneLine(&problem.to_string()));
    }
    ExitCode::from(u8::from(!read.problems.is_empty()))
}
