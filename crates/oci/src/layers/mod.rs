//! The files that the layers of an image make, one on top of the other (OCI image specification, layer.md).

mod error;
mod image_files;
mod image_scan;
mod limited;
mod packing;
mod paths;
mod zstd;

#[cfg(test)]
mod tests;

pub use error::LayerError;
pub use image_files::{ImageFiles, LayerLimits, RATIO};
pub use image_scan::ImageScan;
