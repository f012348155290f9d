//! The files that the layers of an image make, one on top of the other (OCI image specification, layer.md).

mod error;
mod image_files;
mod image_scan;
mod limited_reader;
mod compression;
mod paths;
mod zstd;

#[cfg(test)]
mod tests;

pub use error::LayerError;
pub use image_files::{ImageFiles, LayerLimits, RATIO};
pub use image_scan::ImageScan;
