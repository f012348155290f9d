//! Authentication.

use oci::ContentDigest;
use serde_json::json;

use super::*;
use test_registry::{response, with_header};

const PASSWORD: &str = "Basic dXNlcjpodW50ZXIy"; // user:hunter2

fn password(host: &str) -> RegistryCredentials {
    credentials(host, &json!({"username": "user", "password": "hunter2"}))
}

/// Makes the registry require tokens, which `/token` issues for the authorization `wanted`.
fn with_tokens(registry: &TestRegistry, wanted: Option<&'static str>) {
    let challenge = format!(
        r#"Bearer realm="http://{}/token",service="test""#,
        registry.host()
    );
    registry.fail(move |head, _| {
        let shown = head
            .headers
            .get("authorization")
            .map(|value| value.to_str().unwrap());
        if head.uri.path() == "/token" {
            let query = head.uri.query().unwrap_or_default();
            let action = if query.contains("push") { "push" } else { "pull" };
            let token = json!({"access_token": format!("token-to-{action}")}).to_string();
            return Some(if wanted.is_none() || shown == wanted {
                response(200, token)
            } else {
                response(401, "")
            });
        }
        let action = if matches!(head.method.as_str(), "GET" | "HEAD") {
            "pull"
        } else {
            "push"
        };
        let is_shown =
            shown == Some("Bearer token-to-push") || shown == Some(&format!("Bearer token-to-{action}"));
        let scope = if action == "push" { "pull,push" } else { "pull" };
        let challenge = format!(r#"{challenge},scope="repository:team/app:{scope}""#);
        (!is_shown).then(|| with_header(response(401, ""), "www-authenticate", &challenge))
    });
}

#[tokio::test]
async fn a_password_is_sent_after_a_challenge() {
    let registry = TestRegistry::start().await;
    registry.store("v1", &packed("one"));
    registry.fail(|head, _| {
        let is_shown = head
            .headers
            .get("authorization")
            .is_some_and(|value| value == PASSWORD);
        (!is_shown).then(|| with_header(response(401, ""), "www-authenticate", "Basic realm=\"test\""))
    });
    let (client, name, host) = (client_of(&registry), registry.image("v1"), registry.host());
    let pulled = client.pull(&name, &password(&host)).await.unwrap();
    assert_eq!(content(&pulled), "one");
    // The password is sent only after a challenge, and then without further challenges.
    let shown: Vec<_> = registry
        .requests()
        .iter()
        .map(|asked| asked.authorization().is_some())
        .collect();
    assert_eq!(shown, [false, true, true, true]);
    let error = client.pull(&name, &no_credentials()).await.unwrap_err();
    assert_eq!(error.reason(), "CredentialsMissing");
    assert_eq!(
        error.to_string(),
        format!(
            "{host} requires credentials for team/app, and none are configured: configure some, or check that the repository exists"
        )
    );
    let wrong = credentials(&host, &json!({"username": "user", "password": "other"}));
    let error = client.pull(&name, &wrong).await.unwrap_err();
    assert_eq!(error.reason(), "CredentialsRefused");
    let message = format!("{host} does not accept the credentials for team/app");
    assert_eq!(error.to_string(), message);
}

#[tokio::test]
async fn tokens_are_requested_from_the_token_server() {
    let registry = TestRegistry::start().await;
    registry.store("v1", &packed("one"));
    let (client, name, host) = (client_of(&registry), registry.image("v1"), registry.host());
    with_tokens(&registry, None);
    assert_eq!(
        content(&client.pull(&name, &no_credentials()).await.unwrap()),
        "one"
    );
    let tokens: Vec<_> = registry
        .requests()
        .into_iter()
        .filter(|asked| asked.path == "/token")
        .collect();
    assert_eq!(tokens.len(), 1);
    assert_eq!(
        tokens[0].query,
        "scope=repository%3Ateam%2Fapp%3Apull&service=test"
    );
    with_tokens(&registry, Some(PASSWORD));
    assert_eq!(
        content(&client.pull(&name, &password(&host)).await.unwrap()),
        "one"
    );
    let error = client.pull(&name, &no_credentials()).await.unwrap_err();
    assert_eq!(error.reason(), "CredentialsMissing", "{error}");
    let wrong = credentials(&host, &json!({"username": "user", "password": "other"}));
    let error = client.pull(&name, &wrong).await.unwrap_err();
    assert_eq!(error.reason(), "CredentialsRefused", "{error}");
}

#[tokio::test]
async fn tokens_of_credentials_are_exchanged_or_sent() {
    let registry = TestRegistry::start().await;
    registry.store("v1", &packed("one"));
    let (client, name, host) = (client_of(&registry), registry.image("v1"), registry.host());
    with_tokens(&registry, None);
    let identity = credentials(&host, &json!({"identitytoken": "refresh+me"}));
    client.pull(&name, &identity).await.unwrap();
    let asked = registry.requests();
    let token = asked.iter().find(|asked| asked.path == "/token").unwrap();
    assert_eq!(token.method, "POST");
    assert_eq!(
        token.body,
        "grant_type=refresh_token&client_id=oci&refresh_token=refresh%2Bme&scope=repository%3Ateam%2Fapp%3Apull&service=test"
    );
    with_tokens(&registry, None);
    let direct = credentials(&host, &json!({"registrytoken": "token-to-pull"}));
    client.pull(&name, &direct).await.unwrap();
    assert_eq!(registry.count("/token"), 0);
    let direct = credentials(&host, &json!({"registrytoken": "other"}));
    let error = client.pull(&name, &direct).await.unwrap_err();
    assert_eq!(error.reason(), "CredentialsRefused", "{error}");
}

#[tokio::test]
async fn a_token_that_expires_is_replaced() {
    let registry = TestRegistry::start().await;
    let image = packed("one");
    registry.store("v1", &image);
    let layer = ContentDigest::compute(image.blobs()[0]).to_string();
    let challenge = format!(r#"Bearer realm="http://{}/token""#, registry.host());
    registry.fail(move |head, before| {
        if head.uri.path() == "/token" {
            return Some(response(200, json!({"token": before.to_string()}).to_string()));
        }
        let shown = head
            .headers
            .get("authorization")
            .and_then(|value| value.to_str().ok());
        let number = shown.and_then(|shown| shown.strip_prefix("Bearer ")?.parse::<usize>().ok());
        // The first token has expired when the layer is requested.
        let oldest = if head.uri.path().ends_with(&layer) { 2 } else { 0 };
        let is_good = number.is_some_and(|number| number >= oldest);
        (!is_good).then(|| with_header(response(401, ""), "www-authenticate", &challenge))
    });
    assert_eq!(content(&pulled(&registry).await.unwrap()), "one");
    assert_eq!(registry.count("/token"), 2);
}

#[tokio::test]
async fn a_push_gets_a_token_for_it() {
    let registry = TestRegistry::start().await;
    with_tokens(&registry, Some(PASSWORD));
    let (client, name) = (client_of(&registry), registry.image("v1"));
    client
        .push(&name, &password(&registry.host()), &packed("one"))
        .await
        .unwrap();
    assert_eq!(registry.count("/token"), 2);
    assert_eq!(
        content(&client.pull(&name, &password(&registry.host())).await.unwrap()),
        "one"
    );
}

#[tokio::test]
async fn unsupported_challenges_are_reported() {
    let registry = TestRegistry::start().await;
    let (client, name, host) = (client_of(&registry), registry.image("v1"), registry.host());
    for (challenge, problem) in [
        ("Negotiate", "neither Basic nor Bearer"),
        ("Bearer service=x", "Bearer, without the URL of a token server"),
        (
            "Bearer realm=\"/token\"",
            "Bearer, without the URL of a token server",
        ),
        (
            "Bearer realm=\"file:///etc/passwd\"",
            "Bearer, without the URL of a token server",
        ),
        (
            "Bearer realm=\"ftp://a/b\"",
            "Bearer, with tokens from a server without TLS",
        ),
    ] {
        registry.fail(move |_, _| Some(with_header(response(401, ""), "www-authenticate", challenge)));
        let error = client.pull(&name, &password(&host)).await.unwrap_err();
        let message = format!("{host} requires authentication that is not supported: {problem}");
        assert_eq!(error.to_string(), message, "{challenge}");
    }
    let basic = |head: &axum::http::request::Parts, _| {
        let challenge = with_header(response(401, ""), "www-authenticate", "Basic");
        head.headers.get("authorization").is_none().then_some(challenge)
    };
    registry.fail(basic);
    let identity = credentials(&host, &json!({"identitytoken": "hunter2"}));
    let error = client.pull(&name, &identity).await.unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("Basic, but the credentials contain only a token"),
        "{error}"
    );
}

#[tokio::test]
async fn responses_of_token_servers_are_not_quoted() {
    let registry = TestRegistry::start().await;
    let (client, name, host) = (client_of(&registry), registry.image("v1"), registry.host());
    let challenge = format!(r#"Bearer realm="http://{host}/token""#);
    for (status, body) in [
        (200, r#"{"token": 7, "x": "hunter2"}"#),
        (200, r#"{"token": ""}"#),
        (200, "hunter2"),
        (200, r#"{"token": "hunter2\n"}"#),
        (400, r#"{"errors": [{"code": "hunter2"}]}"#),
    ] {
        let challenge = challenge.clone();
        registry.fail(move |head, _| {
            let is_token = head.uri.path() == "/token";
            let asks = || with_header(response(401, ""), "www-authenticate", &challenge);
            Some(if is_token { response(status, body) } else { asks() })
        });
        let error = client.pull(&name, &password(&host)).await.unwrap_err();
        assert_eq!(error.reason(), "RegistryAnswerInvalid", "{error}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
}
