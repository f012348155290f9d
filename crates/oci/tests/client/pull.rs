//! Pulls of valid and invalid images.

use oci::{
    ContentDigest,
    client::RegistryError,
    manifest::{IMAGE_INDEX, IMAGE_MANIFEST, ManifestError},
};
use serde_json::json;

use super::*;
use test_registry::{response, with_header};

#[tokio::test]
async fn an_image_is_pulled_by_tag_and_by_digest() {
    let registry = TestRegistry::start().await;
    let digest = registry.store("v1", &packed("one"));
    let client = client_of(&registry);
    for reference in [
        registry.image("v1"),
        registry.image("v1").with_digest(digest.clone()),
    ] {
        let pulled = client.pull(&reference, &no_credentials()).await.unwrap();
        assert_eq!((content(&pulled).as_str(), &pulled.digest), ("one", &digest));
        assert!(String::from_utf8_lossy(&pulled.config).contains("\"label\":\"value\""));
        assert_eq!(
            client.resolve(&reference, &no_credentials()).await.unwrap(),
            digest
        );
    }
}

#[tokio::test]
async fn a_moved_tag_is_detected_and_the_old_digest_stays_available() {
    let registry = TestRegistry::start().await;
    let client = client_of(&registry);
    let (tag, old) = (registry.image("v1"), registry.store("v1", &packed("old")));
    assert_eq!(client.resolve(&tag, &no_credentials()).await.unwrap(), old);
    let new = registry.store("v1", &packed("new"));
    registry.fail(|_, _| None);
    assert_eq!(client.resolve(&tag, &no_credentials()).await.unwrap(), new);
    // Resolving a tag does not count as a pull.
    assert!(registry.requests().iter().all(|asked| asked.method == "HEAD"));
    assert_eq!(
        content(&client.pull(&tag, &no_credentials()).await.unwrap()),
        "new"
    );
    assert_eq!(
        content(
            &client
                .pull(&tag.with_digest(old), &no_credentials())
                .await
                .unwrap()
        ),
        "old"
    );
}

#[tokio::test]
async fn the_digest_is_computed_if_the_registry_does_not_send_it() {
    let registry = TestRegistry::start().await;
    let image = packed("one");
    let digest = registry.store("v1", &image);
    let client = client_of(&registry);
    for status in [200, 405] {
        let manifest = image.manifest().clone();
        registry.fail(move |head, _| {
            let found = |body| with_header(response(200, body), "content-type", IMAGE_MANIFEST);
            match head.method.as_str() {
                "HEAD" => Some(response(status, "")),
                _ => Some(found(manifest.clone())),
            }
        });
        assert_eq!(
            client
                .resolve(&registry.image("v1"), &no_credentials())
                .await
                .unwrap(),
            digest
        );
    }
}

#[tokio::test]
async fn the_image_for_the_architecture_is_chosen_from_an_index() {
    let registry = TestRegistry::start().await;
    let mut manifests = Vec::new();
    for architecture in ["amd64", "arm64"] {
        let image = packed(architecture);
        let digest = registry.store(architecture, &image);
        manifests.push(json!({
            "mediaType": IMAGE_MANIFEST, "digest": digest, "size": image.manifest().len(),
            "platform": {"os": "linux", "architecture": architecture},
        }));
    }
    let index = json!({"schemaVersion": 2, "mediaType": IMAGE_INDEX, "manifests": manifests}).to_string();
    let digest = registry.store_manifest("v1", IMAGE_INDEX, index.into());
    for architecture in ["amd64", "arm64"] {
        let mut options = options(&[&registry.host()]);
        options.architecture = architecture.to_owned();
        let client = RegistryClient::new(options).unwrap();
        let pulled = client
            .pull(&registry.image("v1"), &no_credentials())
            .await
            .unwrap();
        // The pinned digest is the same for every architecture.
        assert_eq!(
            (content(&pulled).as_str(), &pulled.digest),
            (architecture, &digest)
        );
    }
}

#[tokio::test]
async fn nested_indexes_are_refused() {
    let registry = TestRegistry::start().await;
    let mut inner = registry.store("inner", &packed("one"));
    let mut media_type = IMAGE_MANIFEST;
    for _ in 0..5 {
        let entry = json!({"mediaType": media_type, "digest": inner, "size": 1});
        let index = json!({"schemaVersion": 2, "manifests": [entry]}).to_string();
        inner = registry.store_manifest("v1", IMAGE_INDEX, index.into());
        media_type = IMAGE_INDEX;
    }
    let error = pulled(&registry).await.unwrap_err();
    let is_nested = matches!(
        &error,
        RegistryError::Manifest {
            cause: ManifestError::Nested,
            ..
        }
    );
    assert!(is_nested, "{error}");
}

#[tokio::test]
async fn content_with_another_digest_is_refused() {
    let registry = TestRegistry::start().await;
    let image = packed("one");
    let digest = registry.store("v1", &image);
    let [layer, _] = image.blobs();
    let refused = async |reference, what: &str| {
        let error = client_of(&registry)
            .pull(&reference, &no_credentials())
            .await
            .unwrap_err();
        assert_eq!(error.reason(), "ImageDigestMismatch", "{error}");
        assert!(error.to_string().contains(what), "{error}");
    };
    let other = packed("two");
    registry.fail(move |head, _| {
        let is_manifest = head.uri.path().contains("/manifests/");
        is_manifest.then(|| {
            with_header(
                response(200, other.manifest().clone()),
                "content-type",
                IMAGE_MANIFEST,
            )
        })
    });
    refused(registry.image("v1").with_digest(digest), "team/app@sha256:").await;
    let wrong = layer.iter().map(|byte| byte ^ 1).collect::<Vec<_>>();
    let path = format!("/v2/team/app/blobs/{}", ContentDigest::compute(layer));
    registry.fail(move |head, _| (head.uri.path() == path).then(|| response(200, wrong.clone())));
    refused(registry.image("v1"), "layer sha256:").await;
    // There is no retry: the response was complete.
    assert_eq!(registry.count(&ContentDigest::compute(layer).to_string()), 1);
    let manifest = image.manifest().clone();
    registry.fail(move |head, _| {
        let lie = ContentDigest::compute(b"lie").to_string();
        let found = with_header(response(200, manifest.clone()), "docker-content-digest", &lie);
        head.uri.path().contains("/manifests/").then_some(found)
    });
    refused(registry.image("v1"), "team/app:v1").await;
}

#[tokio::test]
async fn reading_stops_at_the_size_limit() {
    let registry = TestRegistry::start().await;
    registry.store("v1", &packed("one"));
    let mut options = options(&[&registry.host()]);
    options.largest_image = 10;
    let client = RegistryClient::new(options).unwrap();
    let error = client
        .pull(&registry.image("v1"), &no_credentials())
        .await
        .unwrap_err();
    assert_eq!(error.reason(), "ImageTooLarge", "{error}");
    assert_eq!(registry.count("/blobs/"), 0);
    registry.fail(|_, _| Some(response(200, vec![b' '; 5 << 20])));
    let error = pulled(&registry).await.unwrap_err();
    assert_eq!(error.reason(), "ImageTooLarge", "{error}");
    assert!(
        error.to_string().ends_with("is larger than 4194304 bytes"),
        "{error}"
    );
}

#[tokio::test]
async fn documents_other_than_manifests_are_refused() {
    let registry = TestRegistry::start().await;
    registry.fail(|_, _| Some(with_header(response(200, "<html>"), "content-type", "text/html")));
    let error = pulled(&registry).await.unwrap_err();
    assert_eq!(error.reason(), "ImageManifestInvalid", "{error}");
}
