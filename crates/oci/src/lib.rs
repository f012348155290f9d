//! OCI images for controllers.
//!
//! Without IO: image references ([`ImageReference`]), credentials ([`RegistryCredentials`]), image locations
//! ([`RegistriesConfig`]), manifests ([`ManifestDocument`]), and files in layers ([`ImageFiles`], or
//! [`ImageScan`] to stream them). The feature `client` adds `RegistryClient`, which sends requests to
//! registries.

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
pub use packed_image::{PackedImage, PackedLayer};
pub use reference::ImageReference;
pub use registries::RegistriesConfig;
