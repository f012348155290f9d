//! Any pull Secret or registries.conf is parsed or rejected. No error contains a password, and every image
//! has a location or its registry is blocked.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oci::{ImageReference, RegistriesConfig, RegistryCredentials, registries::LocationError};

const IMAGES: [&str; 3] = [
    "registry.example.com/team/app:v1",
    "localhost:5000/a",
    "docker.io/library/busybox@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
];

fuzz_target!(|bytes: &[u8]| {
    let images = IMAGES.map(|image| image.parse::<ImageReference>().expect("the reference is valid"));
    let mut credentials = RegistryCredentials::default();
    match credentials.add("a Secret", bytes) {
        Ok(()) => images.iter().for_each(|image| {
            credentials.find(image);
        }),
        Err(error) => assert!(!error.to_string().contains("hunter2"), "{error}"),
    }
    let Some(content) = std::str::from_utf8(bytes).ok() else {
        return;
    };
    let Ok(config) = RegistriesConfig::parse("registries.conf", content) else {
        return;
    };
    for image in &images {
        match config.locations(image) {
            Ok(locations) => assert!(!locations.is_empty(), "{image} has no location"),
            Err(LocationError::Blocked(_)) => {}
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        let _ = config.destination(image);
    }
});
