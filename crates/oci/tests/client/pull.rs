//! Images as they should be, and those that nobody should take.

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
    for reference in [registry.image("v1"), registry.image("v1").with_digest(digest.clone())] {
        let pulled = client.pull(&reference, &no_credentials()).await.unwrap();
        assert_eq!((content(&pulled).as_str(), &pulled.digest), ("one", &digest));
        assert!(String::from_utf8_lossy(&pulled.config).contains("\"label\":\"value\""));
        assert_eq!(client.resolve(&reference, &no_credentials()).await.unwrap(), digest);
    }
}

#[tokio::test]
async fn a_tag_that_moves_is_seen_and_the_old_image_stays() {
    let registry = TestRegistry::start().await;
    let client = client_of(&registry);
    let (tag, old) = (registry.image("v1"), registry.store("v1", &packed("old")));
    assert_eq!(client.resolve(&tag, &no_credentials()).await.unwrap(), old);
    let new = registry.store("v1", &packed("new"));
    registry.fail(|_, _| None);
    assert_eq!(client.resolve(&tag, &no_credentials()).await.unwrap(), new);
    // Looking whether it moved does not count as a pull.
    assert!(registry.requests().iter().all(|asked| asked.method == "HEAD"));
    assert_eq!(content(&client.pull(&tag, &no_credentials()).await.unwrap()), "new");
    assert_eq!(content(&client.pull(&tag.with_digest(old), &no_credentials()).await.unwrap()), "old");
}

#[tokio::test]
async fn a_digest_is_found_where_a_registry_does_not_say_it() {
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
            client.resolve(&registry.image("v1"), &no_credentials()).await.unwrap(),
            digest
        );
    }
}

#[tokio::test]
async fn an_index_leads_to_the_image_for_an_architecture() {
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
        let pulled = client.pull(&registry.image("v1"), &no_credentials()).await.unwrap();
        // What is pinned is the same everywhere.
        assert_eq!(
            (content(&pulled).as_str(), &pulled.digest),
            (architecture, &digest)
        );
    }
}

#[tokio::test]
async fn indexes_that_lead_to_indexes_are_refused() {
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
async fn what_has_another_digest_is_refused() {
    let registry = TestRegistry::start().await;
    let image = packed("one");
    let digest = registry.store("v1", &image);
    let [layer, _] = image.blobs();
    let refused = async |reference, what: &str| {
        let error = client_of(&registry).pull(&reference, &no_credentials()).await.unwrap_err();
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
    // It is asked once: it is complete, and another time would be no better.
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
async fn what_is_too_large_is_not_read_to_its_end() {
    let registry = TestRegistry::start().await;
    registry.store("v1", &packed("one"));
    let mut options = options(&[&registry.host()]);
    options.largest_image = 10;
    let client = RegistryClient::new(options).unwrap();
    let error = client.pull(&registry.image("v1"), &no_credentials()).await.unwrap_err();
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
async fn what_is_not_a_manifest_is_refused() {
    let registry = TestRegistry::start().await;
    registry.fail(|_, _| Some(with_header(response(200, "<html>"), "content-type", "text/html")));
    let error = pulled(&registry).await.unwrap_err();
    assert_eq!(error.reason(), "ImageManifestInvalid", "{error}");
}
