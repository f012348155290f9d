//! Options of the registry client.

use std::time::Duration;

use crate::registries::RegistriesConfig;

/// Options of the registry client.
#[derive(Clone, Debug)]
pub struct RegistryOptions {
    /// The locations of images.
    pub registries: RegistriesConfig,
    /// CA certificates in PEM, trusted in addition to the system's.
    pub certificate_authorities: Vec<u8>,
    /// Timeout of a TCP connection attempt.
    pub connect_timeout: Duration,
    /// Timeout without any data transfer.
    pub idle_timeout: Duration,
    /// Timeout of a whole image, per location.
    pub timeout: Duration,
    /// The number of attempts for transient errors, including the first.
    pub attempts: u32,
    /// The delay before the second attempt; it doubles for each further one.
    pub backoff: Duration,
    /// The longest delay accepted from `Retry-After`. The client does not retry if the registry requests a
    /// longer one.
    pub longest_wait: Duration,
    /// The maximum size of an image's configuration and layers in bytes, as stored.
    pub largest_image: u64,
    /// The architecture to choose from an index, in Go's terms.
    pub architecture: String,
    /// Whether to use the environment's proxies (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`).
    pub proxies: bool,
    /// The client's `User-Agent`.
    pub user_agent: String,
}

impl Default for RegistryOptions {
    fn default() -> Self {
        Self {
            registries: RegistriesConfig::default(),
            certificate_authorities: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(30),
            timeout: Duration::from_secs(300),
            attempts: 4,
            backoff: Duration::from_secs(1),
            longest_wait: Duration::from_secs(30),
            largest_image: 128 << 20,
            architecture: "amd64".to_owned(),
            proxies: true,
            user_agent: concat!("oci/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}
