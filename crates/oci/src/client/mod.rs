//! A client for registries (OCI distribution specification 1.1; Docker's token authentication).
//!
//! ```text
//! image -> locations -> session with one repository -> request -> token, redirects -> bytes of the right size and digest
//! ```

mod any_certificate;
mod challenge;
mod error;
mod http_clients;
mod open_image;
mod options;
mod proxy_connector;
mod pull;
mod push;
mod refusal;
mod registry_client;
mod response_body;
mod retries;
mod session;
mod token;
mod upload_body;

pub use error::{LocationFailure, RegistryError};
pub use open_image::{LayerReader, OpenImage};
pub use options::RegistryOptions;
pub use pull::PulledImage;
pub use registry_client::RegistryClient;
