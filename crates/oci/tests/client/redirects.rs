//! Registries that keep their blobs elsewhere.

use serde_json::json;

use super::*;
use test_registry::{response, with_header};

/// Has the registry ask for a password, and send whoever asks for blobs to `location`, in which `{}` stands for the path.
fn redirect_to(registry: &TestRegistry, location: &str) {
    let location = location.to_owned();
    registry.fail(move |head, _| {
        if head.headers.get("authorization").is_none() {
            return Some(with_header(response(401, ""), "www-authenticate", "Basic"));
        }
        let path = head.uri.path();
        let is_led = path.contains("/blobs/") && head.uri.query().is_none();
        is_led.then(|| with_header(response(307, ""), "location", &location.replace("{}", path)))
    });
}

fn client_of_both(first: &TestRegistry, second: &TestRegistry) -> RegistryClient {
    RegistryClient::new(options(&[&first.host(), &second.host()])).unwrap()
}

#[tokio::test]
async fn another_server_is_not_shown_what_is_for_the_registry() {
    let (registry, storage) = (TestRegistry::start().await, TestRegistry::start().await);
    registry.store("v1", &packed("one"));
    storage.store("v1", &packed("one"));
    let shown = credentials(
        &registry.host(),
        &json!({"username": "user", "password": "hunter2"}),
    );
    let client = client_of_both(&registry, &storage);
    redirect_to(
        &registry,
        &format!("http://{}{{}}?signature=hunter2", storage.host()),
    );
    let pulled = client.pull(&registry.image("v1"), &shown).await.unwrap();
    assert_eq!(content(&pulled), "one");
    assert_eq!(storage.count("/blobs/"), 2);
    assert!(
        storage
            .requests()
            .iter()
            .all(|asked| asked.authorization().is_none())
    );
    // Nor is the registry, when the other leads back to it.
    let back = format!("http://{}", registry.host());
    storage.fail(move |head, _| {
        let location = format!("{back}{}?back", head.uri.path());
        Some(with_header(response(302, ""), "location", &location))
    });
    let error = client.pull(&registry.image("v1"), &shown).await.unwrap_err();
    assert_eq!(error.reason(), "RegistryAnswerInvalid", "{error}");
    let asked = registry.requests();
    let returned: Vec<_> = asked.iter().filter(|asked| asked.query == "back").collect();
    assert!(!returned.is_empty() && returned.iter().all(|asked| asked.authorization().is_none()));
    // What the other says is its own, and how it was asked is secret.
    for status in [401, 403, 404] {
        storage.fail(move |_, _| Some(with_header(response(status, ""), "www-authenticate", "Basic")));
        let error = client
            .pull(&registry.image("v1"), &shown)
            .await
            .unwrap_err()
            .to_string();
        let start = format!("{} answers HTTP {status}", storage.host());
        assert!(error.starts_with(&start) && !error.contains("hunter2"), "{error}");
    }
}

#[tokio::test]
async fn the_registry_itself_is_shown_it_again() {
    let registry = TestRegistry::start().await;
    registry.store("v1", &packed("one"));
    let shown = credentials(
        &registry.host(),
        &json!({"username": "user", "password": "hunter2"}),
    );
    redirect_to(&registry, "{}?again");
    let pulled = client_of(&registry)
        .pull(&registry.image("v1"), &shown)
        .await
        .unwrap();
    assert_eq!(content(&pulled), "one");
}

#[tokio::test]
async fn what_leads_nowhere_is_not_followed() {
    let registry = TestRegistry::start().await;
    registry.store("v1", &packed("one"));
    let shown = credentials(
        &registry.host(),
        &json!({"username": "user", "password": "hunter2"}),
    );
    for (location, problem) in [
        ("{}", "it leads on and on"),
        ("file:///etc/passwd", "that is not a URL"),
        ("http://[", "that is not a URL"),
        ("https://user:hunter2@localhost/", "the URL has a user"),
    ] {
        redirect_to(&registry, location);
        let error = client_of(&registry)
            .pull(&registry.image("v1"), &shown)
            .await
            .unwrap_err();
        let error = error.to_string();
        assert!(
            error.ends_with(&format!("elsewhere: {problem}")),
            "{location}: {error}"
        );
    }
}
