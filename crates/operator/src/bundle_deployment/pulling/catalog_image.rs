//! Catalogs in images, which are read as they come: they may have gigabytes.

use std::{
    io::{self, Read},
    path::Path,
};

use catalog::{CatalogReader, ReadCatalog};
use oci::{ImageScan, LayerLimits, RegistryError, client::OpenImage, layers::LayerError};
use serde_json::Value;
use tokio::{runtime::Handle, task::JoinError};

/// The most bytes of an image of a catalog, as it is stored. The largest published ones have some 2 GB, caches of `opm` included.
pub const LARGEST_CATALOG: u64 = 8 << 30;

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

/// What an image holds of a catalog.
#[derive(Debug)]
pub struct CatalogInImage {
    /// The folder that was read, from the root of the image and without slashes at its ends.
    pub folder: String,
    /// What is in it.
    pub read: ReadCatalog,
}

/// Why the catalog of an image cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CatalogImageError {
    /// Its registry does not send all of it.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A layer may not be in an image, or holds more than is kept.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// What stands behind the files of a layer cannot be read.
    #[error("layer {0}: {1}")]
    End(String, io::Error),
    /// Its configuration, which says where the catalog is, is not JSON.
    #[error("its configuration is not JSON: {0}")]
    Configuration(serde_json::Error),
    /// The thread that read it was lost.
    #[error("reading it was interrupted")]
    Interrupted(#[from] JoinError),
}

/// A layer that comes, and what its registry says where it ends early: readers above it forget that.
struct Layer<R> {
    content: R,
    failure: Option<RegistryError>,
}

/// Reads the catalog of an image, as far as `reader` wants it.
///
/// # Errors
///
/// When a layer does not come, is not what the manifest says, or may not be in an image.
pub async fn read_catalog(
    mut image: OpenImage,
    mut reader: CatalogReader,
) -> Result<CatalogInImage, CatalogImageError> {
    let runtime = Handle::current();
    let reading = tokio::task::spawn_blocking(move || {
        let folder = folder(&image)?;
        let mut scan = ImageScan::new(&folder, LIMITS);
        for layer in image.manifest.layers.clone().iter().rev() {
            if scan.is_complete() {
                break;
            }
            let mut content = Layer {
                content: runtime.block_on(image.layer(layer))?,
                failure: None,
            };
            let mut each = |path: &str, file: &mut dyn Read| {
                let ending = Path::new(path).extension().and_then(|ending| ending.to_str());
                match ending.is_some_and(|ending| ENDINGS.contains(&ending)) {
                    true => reader.read(path, file).map_err(io::Error::other),
                    false => Ok(()),
                }
            };
            let name = layer.digest.as_str();
            let read = scan.read(name, &layer.media_type, layer.size, content.by_ref(), &mut each);
            // The digest is that of all bytes, also of those behind the end of the archive.
            let read = read.map_err(CatalogImageError::from).and_then(|()| {
                let rest = io::copy(&mut content, &mut io::sink());
                rest.map_err(|error| CatalogImageError::End(name.to_owned(), error))
            });
            match (read, content.failure) {
                (_, Some(failure)) => return Err(failure.into()),
                (read, None) => read?,
            };
        }
        Ok(CatalogInImage {
            folder,
            read: reader.finish(),
        })
    });
    reading.await?
}

/// The folder of the catalog, from the root of the image and without slashes at its ends.
fn folder(image: &OpenImage) -> Result<String, CatalogImageError> {
    let config: Value = serde_json::from_slice(&image.config).map_err(CatalogImageError::Configuration)?;
    let labels = config.pointer("/config/Labels");
    let label = labels.and_then(|labels| labels.get(CONFIGS_LABEL)?.as_str());
    Ok(label.unwrap_or(CONFIGS).trim_matches('/').to_owned())
}

impl<R: Read> Read for Layer<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.content.read(buffer).map_err(|error| match error.downcast() {
            Ok(failure) => {
                let failure = self.failure.insert(failure);
                io::Error::other(failure.to_string())
            }
            Err(error) => error,
        })
    }
}
