//! Streamed images.

use std::io::Read as _;

use oci::{ImageScan, RegistryError};
use test_registry::{cut_off, response};

use super::*;

/// The files of an image from a scan.
async fn scan_image(
    client: &RegistryClient,
    image: &ImageReference,
) -> Result<Vec<(String, String)>, String> {
    let opened = client.open(image, &no_credentials()).await;
    let mut image = opened.map_err(|error: RegistryError| error.to_string())?;
    let mut scan = ImageScan::new("manifests", LIMITS);
    let mut found = Vec::new();
    for layer in image.manifest.layers.clone() {
        let mut reader = image.layer(&layer).await.map_err(|error| error.to_string())?;
        let scanning = move || {
            let mut each = |path: &str, content: &mut dyn std::io::Read| {
                let mut text = String::new();
                content.read_to_string(&mut text)?;
                found.push((path.to_owned(), text));
                Ok(())
            };
            let read = scan.read(
                layer.digest.as_str(),
                &layer.media_type,
                layer.size,
                &mut reader,
                &mut each,
            );
            read.map_err(|error| error.to_string())?;
            // The digest includes bytes after the end of the archive.
            let rest = reader.read_to_end(&mut Vec::new());
            rest.map_err(|error| error.to_string())?;
            Ok::<_, String>((scan, found))
        };
        (scan, found) = tokio::task::spawn_blocking(scanning).await.unwrap()?;
    }
    Ok(found)
}

#[tokio::test]
async fn layers_are_streamed() {
    let registry = TestRegistry::start().await;
    registry.store("v1", &packed("one"));
    let found = scan_image(&client_of(&registry), &registry.image("v1"))
        .await
        .unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].1, "one");
}

#[tokio::test]
async fn a_streamed_layer_with_another_digest_or_size_fails_at_its_end() {
    let registry = TestRegistry::start().await;
    registry.store("v1", &packed("one"));
    let (client, image) = (client_of(&registry), registry.image("v1"));
    let layer = packed("one").blobs()[0].clone();
    let mut other = layer.to_vec();
    // The time in the gzip header, which no decompressor checks.
    other[4] ^= 1;
    let other = bytes::Bytes::from(other);
    let (short, long) = (layer.slice(..layer.len() - 1), [&layer[..], b"more"].concat());
    for (content, message) in [
        (other, "digest"),
        (short, "has 88 bytes, not 89"),
        (long.into(), "has 93 bytes, not 89"),
    ] {
        let digest = oci::ContentDigest::compute(&layer).to_string();
        registry.fail(move |head, _| {
            let is_layer = head.uri.path().ends_with(&digest);
            is_layer.then(|| response(200, content.clone()))
        });
        let error = scan_image(&client, &image).await.unwrap_err();
        assert!(error.contains(message), "{error}");
    }
    let digest = oci::ContentDigest::compute(&layer).to_string();
    registry.fail(move |head, _| {
        head.uri
            .path()
            .ends_with(&digest)
            .then(|| cut_off(layer.slice(..10), layer.len()))
    });
    assert!(
        scan_image(&client, &image)
            .await
            .unwrap_err()
            .contains("closed the connection before")
    );
}
