//! OCI images for controllers.
//!
//! What an image is called ([`ImageReference`]), who may pull it ([`RegistryCredentials`]), where it is looked for
//! ([`RegistriesConfig`]), what its manifests say ([`ManifestDocument`]), and which files its layers make
//! ([`ImageFiles`]) is decided without IO: bytes come from whoever asks a registry.

pub mod credentials;
pub mod digest;
pub mod layers;
pub mod manifest;
pub mod reference;
pub mod registries;

pub use credentials::{Credential, RegistryCredentials};
pub use digest::ContentDigest;
pub use layers::{ImageFiles, LayerLimits};
pub use manifest::ManifestDocument;
pub use reference::ImageReference;
pub use registries::RegistriesConfig;
