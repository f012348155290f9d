//! Pulls and pushes with registries that fail in various ways.

#![expect(clippy::unwrap_used, reason = "a failed setup fails the test")]

mod authentication;
mod docker_registry;
mod faults;
mod mirrors;
mod pull;
mod push;
mod redirects;
mod streaming;
mod tls;

use std::{collections::BTreeMap, time::Duration};

use oci::{
    ImageReference, LayerLimits, PackedImage, RegistriesConfig, RegistryClient, RegistryCredentials,
    RegistryError, RegistryOptions, client::PulledImage,
};

use test_registry::TestRegistry;

const LIMITS: LayerLimits = LayerLimits {
    bytes: 8 << 20,
    entries: 100,
};

/// Options with quick retries, for registries without TLS at these hosts.
fn options(insecure: &[&str]) -> RegistryOptions {
    let entries = insecure
        .iter()
        .map(|host| format!("[[registry]]\nlocation = {host:?}\ninsecure = true\n"));
    let mut options = options_with(&entries.collect::<String>());
    options.attempts = 3;
    options
}

fn options_with(registries: &str) -> RegistryOptions {
    RegistryOptions {
        registries: RegistriesConfig::parse("registries.conf", registries).unwrap(),
        // The machine may have no CA certificates.
        certificate_authorities: test_authority::TestAuthority::new("Unused").pem().into_bytes(),
        backoff: Duration::from_millis(1),
        longest_wait: Duration::from_secs(5),
        proxies: false,
        ..RegistryOptions::default()
    }
}

fn client_of(registry: &TestRegistry) -> RegistryClient {
    RegistryClient::new(options(&[&registry.host()])).unwrap()
}

fn image(text: &str) -> ImageReference {
    text.parse().unwrap()
}

fn no_credentials() -> RegistryCredentials {
    RegistryCredentials::default()
}

/// Credentials for a host, in the format of a pull Secret.
fn credentials(host: &str, entry: &serde_json::Value) -> RegistryCredentials {
    let mut credentials = RegistryCredentials::default();
    let file = serde_json::json!({"auths": {host: entry}}).to_string();
    credentials.add("Secret", file.as_bytes()).unwrap();
    credentials
}

/// An image whose file `manifests/a` has this content.
fn packed(content: &str) -> PackedImage {
    let files = BTreeMap::from([("manifests/a".to_owned(), content.as_bytes().to_vec())]);
    PackedImage::new(
        &files,
        &BTreeMap::from([("label".to_owned(), "value".to_owned())]),
    )
    .unwrap()
}

fn content(pulled: &PulledImage) -> String {
    let files = pulled.files(&["manifests"], LIMITS).unwrap();
    String::from_utf8(files["manifests/a"].clone()).unwrap()
}

async fn pulled(registry: &TestRegistry) -> Result<PulledImage, RegistryError> {
    client_of(registry)
        .pull(&registry.image("v1"), &no_credentials())
        .await
}
