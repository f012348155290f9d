//! How registries are asked.

use std::time::Duration;

use crate::registries::RegistriesConfig;

/// How registries are asked.
#[derive(Clone, Debug)]
pub struct RegistryOptions {
    /// Where images are looked for.
    pub registries: RegistriesConfig,
    /// Certificates of CAs that are trusted beside the system's, in PEM.
    pub certificate_authorities: Vec<u8>,
    /// How long a TCP connection may take to be made.
    pub connect_timeout: Duration,
    /// How long a registry may send and take nothing.
    pub idle_timeout: Duration,
    /// How long each location has for all of an image.
    pub timeout: Duration,
    /// How often something is asked for, the first time included, where asking again may help.
    pub attempts: u32,
    /// How long to wait before the second attempt; before each further one twice as long.
    pub backoff: Duration,
    /// The longest to wait because a registry says so (`Retry-After`). If it says longer, it is not asked again.
    pub longest_wait: Duration,
    /// The most bytes of an image's configuration and layers, as they are stored.
    pub largest_image: u64,
    /// Which image of an index is taken: an architecture, as Go calls it.
    pub architecture: String,
    /// Whether proxies of the environment are used (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`).
    pub proxies: bool,
    /// How the client calls itself.
    pub user_agent: String,
}

// === impl RegistryOptions ===

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
