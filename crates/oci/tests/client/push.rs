//! Pushes.

use std::sync::atomic::{AtomicUsize, Ordering};

use oci::ContentDigest;

use super::*;
use test_registry::{response, with_header};

#[tokio::test]
async fn pushed_images_can_be_pulled_and_blobs_are_sent_once() {
    let registry = TestRegistry::start().await;
    let (client, name, image) = (client_of(&registry), registry.image("v1"), packed("one"));
    let digest = client.push(&name, &no_credentials(), &image).await.unwrap();
    assert_eq!(digest, ContentDigest::compute(image.manifest()));
    let pulled = client
        .pull(&name.with_digest(digest.clone()), &no_credentials())
        .await
        .unwrap();
    assert_eq!(content(&pulled), "one");
    assert_eq!(client.resolve(&name, &no_credentials()).await.unwrap(), digest);
    // The manifest is last: a tag never refers to missing blobs.
    registry.fail(|_, _| None);
    client
        .push(&registry.image("v2"), &no_credentials(), &image)
        .await
        .unwrap();
    let asked: Vec<_> = registry
        .requests()
        .iter()
        .map(|asked| asked.method.to_string())
        .collect();
    assert_eq!(asked, ["HEAD", "HEAD", "PUT"]);
}

#[tokio::test]
async fn a_failed_upload_restarts() {
    let registry = TestRegistry::start().await;
    let failures = AtomicUsize::new(0);
    registry.fail(move |head, _| {
        let is_failed = head.method == "PUT" && failures.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        is_failed.then(|| response(502, ""))
    });
    let (client, name) = (client_of(&registry), registry.image("v1"));
    client
        .push(&name, &no_credentials(), &packed("one"))
        .await
        .unwrap();
    assert_eq!(
        content(&client.pull(&name, &no_credentials()).await.unwrap()),
        "one"
    );
}

#[tokio::test]
async fn a_large_layer_is_pushed_in_parts() {
    let registry = TestRegistry::start().await;
    // Incompressible content.
    let mut state = 1_u64;
    let noise = (0..2 << 20).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b' ' + u8::try_from(state >> 58).unwrap())
    });
    let noise: String = noise.collect();
    let (client, name) = (client_of(&registry), registry.image("v1"));
    client
        .push(&name, &no_credentials(), &packed(&noise))
        .await
        .unwrap();
    assert!(content(&client.pull(&name, &no_credentials()).await.unwrap()) == noise);
}

#[tokio::test]
async fn rejected_pushes_are_reported() {
    let registry = TestRegistry::start().await;
    let (client, name) = (client_of(&registry), registry.image("v1"));
    let other = name.with_digest(ContentDigest::compute(b"other"));
    let error = client
        .push(&other, &no_credentials(), &packed("one"))
        .await
        .unwrap_err();
    assert_eq!(error.reason(), "ImageDigestMismatch", "{error}");
    for (fault, reason) in [
        ("forbidden", "RegistryForbids"),
        ("without location", "RegistryAnswerInvalid"),
        ("elsewhere", "RegistryAnswerInvalid"),
        ("redirected", "RegistryAnswerInvalid"),
        ("invalid", "RegistryAnswerInvalid"),
        ("other digest", "ImageDigestMismatch"),
        ("read only", "RegistryAnswerInvalid"),
    ] {
        registry.fail(move |head, _| {
            let (method, is_blob) = (head.method.as_str(), head.uri.path().contains("/blobs/"));
            match (fault, method, is_blob) {
                (_, "HEAD", _) => Some(response(404, "")),
                ("forbidden", "POST", _) => Some(response(403, r#"{"errors":[{"code":"DENIED"}]}"#)),
                ("without location", "POST", _) => Some(response(202, "")),
                ("elsewhere", "POST", _) => Some(with_header(
                    response(202, ""),
                    "location",
                    "https://user@localhost/",
                )),
                ("redirected", "POST", _) => Some(with_header(response(307, ""), "location", "/x")),
                ("invalid", "PUT", true) => Some(response(400, r#"{"errors":[{"code":"DIGEST_INVALID"}]}"#)),
                ("other digest", "PUT", false) => {
                    let digest = ContentDigest::compute(b"other").to_string();
                    Some(with_header(response(201, ""), "docker-content-digest", &digest))
                }
                ("read only", "PUT", false) => Some(response(405, "")),
                _ => None,
            }
        });
        let error = client
            .push(&name, &no_credentials(), &packed("one"))
            .await
            .unwrap_err();
        assert_eq!(error.reason(), reason, "{fault}: {error}");
    }
}
