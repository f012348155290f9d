//! Bundles and catalogs in images: pulled by tasks of their own, so that no reconciliation waits for a registry.
//!
//! ```text
//! tag -> digest -> recorded or found before -> its files are in the record
//!              \-> layers -> manifests, metadata -> reconciled again
//! ```
//!
//! The layout is that of registry+v1: folders `manifests` and `metadata`. Labels of the image are not read, as OLM v1 does not
//! read them either (`registryv1.go` of operator-controller).

mod catalog_image;
#[cfg(test)]
mod catalog_tests;
mod catalogs;
#[cfg(test)]
mod documented_failures;
mod error;
mod loading;
mod puller;
#[cfg(test)]
mod tests;

pub use catalog_image::{CatalogImageError, CatalogInImage, LARGEST_CATALOG, read_catalog};
pub(super) use catalogs::{CatalogImage, FollowedCatalog};
pub(super) use loading::PULLING;
pub(super) use puller::ImagePuller;
pub use puller::image_files;
