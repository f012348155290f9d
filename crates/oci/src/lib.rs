//! OCI images for controllers.
//!
//! What an image is called ([`ImageReference`]), who may pull it ([`RegistryCredentials`]), where it is looked for
//! ([`RegistriesConfig`]), what its manifests say ([`ManifestDocument`]), and which files its layers make
//! ([`ImageFiles`], or [`ImageScan`] for images that nobody holds) is decided without IO. The feature `client` brings `RegistryClient`, which asks registries.

#[cfg(feature = "client")]
pub mod client;
pub mod credentials;
pub mod digest;
pub mod layers;
pub mod manifest;
pub mod packed_image;
pub mod reference;
pub mod registries;

#[cfg(feature = "client")]
pub use client::{RegistryClient, RegistryError, RegistryOptions};
pub use credentials::{Credential, RegistryCredentials};
pub use digest::ContentDigest;
pub use layers::{ImageFiles, ImageScan, LayerLimits};
pub use manifest::ManifestDocument;
pub use packed_image::PackedImage;
pub use reference::ImageReference;
pub use registries::RegistriesConfig;
