//! Flags for access to image registries.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use oci::{RegistriesConfig, RegistryOptions};

/// Access to image registries.
#[derive(Clone, Debug, Default, Args)]
pub struct RegistryAccess {
    /// Mirrors and registries without TLS: containers-registries.conf(5).
    #[arg(long, value_name = "FILE", help_heading = "Registries")]
    pub registries_conf: Option<PathBuf>,
    /// CA certificates (PEM) of registries, besides the system's.
    #[arg(long, value_name = "FILE", help_heading = "Registries")]
    pub registry_ca: Option<PathBuf>,
}

impl RegistryAccess {
    /// Returns the options of a registry client.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or parsed.
    pub fn options(&self) -> anyhow::Result<RegistryOptions> {
        let registries = match &self.registries_conf {
            Some(path) => {
                let content = read("--registries-conf", path)?;
                let content = String::from_utf8(content)
                    .with_context(|| format!("--registries-conf {} is not UTF-8", path.display()))?;
                RegistriesConfig::parse(&path.display().to_string(), &content)?
            }
            None => RegistriesConfig::default(),
        };
        let certificate_authorities = match &self.registry_ca {
            Some(path) => read("--registry-ca", path)?,
            None => Vec::new(),
        };
        Ok(RegistryOptions {
            registries,
            certificate_authorities,
            user_agent: concat!("windlass/", env!("CARGO_PKG_VERSION")).to_owned(),
            ..RegistryOptions::default()
        })
    }
}

fn read(flag: &str, path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {flag} {}", path.display()))
}
