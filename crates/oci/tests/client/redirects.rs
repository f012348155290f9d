//! Registries that redirect to other servers.

use serde_json::json;

use super::*;
use test_registry::{response, with_header};

/// Makes the registry require a password, and redirect requests for blobs to `location`, in which `{}` stands
/// for the path.
fn redirect_to(registry: &TestRegistry, location: &str) {
    let location = location.to_owned();
    registry.fail(move |head, _| {
        if head.headers.get("authorization").is_none() {
            return Some(with_header(response(401, ""), "www-authenticate", "Basic"));
        }
        let path = head.uri.path();
        let is_redirected = path.contains("/blobs/") && head.uri.query().is_none();
        is_redirected.then(|| with_header(response(307, ""), "location", &location.replace("{}", path)))
    });
}

fn client_of_both(first: &TestRegistry, second: &TestRegistry) -> RegistryClient {
    RegistryClient::new(options(&[&first.host(), &second.host()])).unwrap()
}

#[tokio::test]
async fn other_servers_get_no_credentials() {
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
    // The registry does not get the credentials either after a redirect back.
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
    // The status of the other server is reported, without its signed URL.
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
async fn a_redirect_within_the_registry_keeps_credentials() {
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
async fn invalid_redirects_are_refused() {
    let registry = TestRegistry::start().await;
    registry.store("v1", &packed("one"));
    let shown = credentials(
        &registry.host(),
        &json!({"username": "user", "password": "hunter2"}),
    );
    for (location, problem) in [
        ("{}", "too many redirects"),
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
        assert!(error.ends_with(&format!(": {problem}")), "{location}: {error}");
    }
}
