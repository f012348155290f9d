//! Mirrors.

use oci::ContentDigest;

use super::*;
use test_registry::response;

/// The name of an image on an unreachable registry with mirrors.
const OWN: &str = "registry.invalid";

fn mirrored(mirrors: &[&str]) -> RegistryClient {
    let mut file = format!("[[registry]]\nlocation = \"{OWN}\"\n");
    for host in mirrors {
        file += &format!("[[registry.mirror]]\nlocation = \"{host}\"\ninsecure = true\n");
    }
    let mut options = options_with(&file);
    options.attempts = 1;
    RegistryClient::new(options).unwrap()
}

#[tokio::test]
async fn mirrors_are_tried_in_order_until_one_has_the_whole_image() {
    let (first, second) = (TestRegistry::start().await, TestRegistry::start().await);
    let one = packed("one");
    let digest = first.store("v1", &one);
    second.store("v1", &one);
    let layer = format!("/v2/team/app/blobs/{}", ContentDigest::compute(one.blobs()[0]));
    let client = mirrored(&[&first.host(), &second.host()]);
    let name = image(&format!("{OWN}/team/app:v1"));
    let pulled = client.pull(&name, &no_credentials()).await.unwrap();
    assert_eq!(pulled.location, first.image("v1"));
    assert_eq!(second.requests().len(), 0);
    for fault in ["missing", "down", "other", "without a layer"] {
        let layer = layer.clone();
        first.fail(move |head, _| match fault {
            "missing" => Some(response(404, "")),
            "down" => Some(response(503, "")),
            "other" => Some(response(200, "{}")),
            _ => (head.uri.path() == layer).then(|| response(404, "")),
        });
        for name in [&name, &name.with_digest(digest.clone())] {
            let pulled = client.pull(name, &no_credentials()).await.unwrap();
            assert_eq!(
                (content(&pulled).as_str(), &pulled.digest),
                ("one", &digest),
                "{fault}"
            );
            assert_eq!(pulled.location.registry, second.host(), "{fault}");
        }
    }
    first.fail(|_, _| Some(response(503, "")));
    assert_eq!(client.resolve(&name, &no_credentials()).await.unwrap(), digest);
}

#[tokio::test]
async fn every_location_without_the_image_gives_its_reason() {
    let registry = TestRegistry::start().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let down = listener.local_addr().unwrap().to_string();
    drop(listener);
    let file = format!(
        "[[registry]]\nlocation = {:?}\ninsecure = true\n[[registry.mirror]]\nlocation = \"{down}/mirror\"\n",
        registry.host()
    );
    let mut options = options_with(&file);
    options.attempts = 1;
    let client = RegistryClient::new(options).unwrap();
    let error = client
        .pull(&registry.image("v1"), &no_credentials())
        .await
        .unwrap_err();
    // The reason of the image's own registry applies.
    assert_eq!(error.reason(), "ImageNotFound");
    let message = error.to_string();
    let start = format!("{down}/mirror/team/app:v1: cannot connect to {down}: ");
    let own = registry.image("v1");
    let end = format!("; {own}: {own} is not found on {}", registry.host());
    assert!(
        message.starts_with(&start) && message.ends_with(&end),
        "{message}"
    );
    // The mirror may recover.
    assert!(error.is_transient());
}

#[tokio::test]
async fn a_blocked_registry_is_neither_pulled_from_nor_pushed_to() {
    let registry = TestRegistry::start().await;
    let file = format!("[[registry]]\nlocation = {:?}\nblocked = true\n", registry.host());
    let client = RegistryClient::new(options_with(&file)).unwrap();
    let pulled = client
        .pull(&registry.image("v1"), &no_credentials())
        .await
        .unwrap_err();
    let pushed = client
        .push(&registry.image("v1"), &no_credentials(), &packed("one"))
        .await
        .unwrap_err();
    assert_eq!([pulled.reason(), pushed.reason()], ["RegistryBlocked"; 2]);
    assert_eq!(registry.requests().len(), 0);
}
