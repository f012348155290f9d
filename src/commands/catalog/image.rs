//! Catalogs in images, which are read as they come: they may have gigabytes.

use std::{
    io::{self, Read as _},
    path::Path,
};

use anyhow::{Context as _, bail};
use catalog::{CatalogReader, ReadCatalog};
use oci::{ImageScan, LayerLimits, client::OpenImage};
use serde_json::Value;
use tokio::runtime::Handle;

/// The most bytes of an image of a catalog, as it is stored. The largest published ones have some 2 GB, caches of `opm` included.
pub(super) const LARGEST: u64 = 8 << 30;

/// How much of it is unpacked.
const LIMITS: LayerLimits = LayerLimits {
    bytes: 32 << 30,
    entries: 1_000_000,
};

/// The label that says where the catalog is, and where it is otherwise (`opm`, "containertools").
const CONFIGS_LABEL: &str = "operators.operatorframework.io.index.configs.v1";
const CONFIGS: &str = "/configs";

/// Endings of files that are read, as in folders.
const ENDINGS: [&str; 3] = ["json", "yaml", "yml"];

/// Reads the catalog of an image.
///
/// # Errors
///
/// When a layer is not what the manifest says, or may not be in an image.
pub(super) async fn read(mut image: OpenImage) -> anyhow::Result<ReadCatalog> {
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || {
        let folder = folder(&image)?;
        let mut scan = ImageScan::new(&folder, LIMITS);
        let mut reader = CatalogReader::default();
        for layer in image.manifest.layers.clone().iter().rev() {
            if scan.is_complete() {
                break;
            }
            let mut content = runtime.block_on(image.layer(layer))?;
            let mut each = |path: &str, file: &mut dyn io::Read| {
                let ending = Path::new(path).extension().and_then(|ending| ending.to_str());
                match ending.is_some_and(|ending| ENDINGS.contains(&ending)) {
                    true => reader.read(path, file).map_err(io::Error::other),
                    false => Ok(()),
                }
            };
            let name = layer.digest.as_str();
            scan.read(name, &layer.media_type, layer.size, content.by_ref(), &mut each)?;
            // The digest is that of all bytes, also of those behind the end of the archive.
            io::copy(&mut content, &mut io::sink())?;
        }
        let read = reader.finish();
        if read.catalog.packages.is_empty() && read.problems.is_empty() {
            bail!("it has no packages in /{folder}: it holds no catalog");
        }
        Ok(read)
    })
    .await?
}

/// The folder of the catalog, from the root of the image and without slashes at its ends.
fn folder(image: &OpenImage) -> anyhow::Result<String> {
    let config: Value = serde_json::from_slice(&image.config).context("its configuration is not JSON")?;
    let label = config["config"]["Labels"][CONFIGS_LABEL]
        .as_str()
        .unwrap_or(CONFIGS);
    Ok(label.trim_matches('/').to_owned())
}
