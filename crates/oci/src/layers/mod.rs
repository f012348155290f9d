//! The files of an image's layers, applied in order (OCI image specification, layer.md).

mod compression;
mod error;
mod image_files;
mod image_scan;
mod limited_reader;
mod paths;
mod zstd;

#[cfg(test)]
mod tests;

pub use error::LayerError;
pub use image_files::{ImageFiles, LayerLimits, RATIO};
pub use image_scan::ImageScan;
