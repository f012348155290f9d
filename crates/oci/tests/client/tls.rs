//! TLS trust.

use serde_json::json;
use test_authority::TestAuthority;

use super::*;
use test_registry::{response, with_header};

#[tokio::test]
async fn a_registry_is_trusted_with_its_ca() {
    let authority = TestAuthority::new("Registry CA");
    let registry = TestRegistry::start_with(&authority.server(&["127.0.0.1"])).await;
    registry.store("v1", &packed("one"));
    let mut trusting = options(&[]);
    trusting.certificate_authorities = authority.pem().into_bytes();
    let client = RegistryClient::new(trusting).unwrap();
    assert_eq!(
        content(
            &client
                .pull(&registry.image("v1"), &no_credentials())
                .await
                .unwrap()
        ),
        "one"
    );
    let client = RegistryClient::new(options(&[])).unwrap();
    let error = client
        .pull(&registry.image("v1"), &no_credentials())
        .await
        .unwrap_err();
    assert_eq!(error.reason(), "RegistryUnreachable");
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
    // An insecure registry is tried with TLS first, without verification.
    registry.fail(|_, _| None);
    assert_eq!(content(&pulled(&registry).await.unwrap()), "one");
    let asked = registry.requests();
    assert!(asked.iter().all(|asked| asked.authorization().is_none()) && asked.len() == 3);
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let authority = TestAuthority::new("Registry CA");
    let registry = TestRegistry::start_with(&authority.server(&["other.test"])).await;
    let mut trusting = options(&[]);
    trusting.certificate_authorities = authority.pem().into_bytes();
    let client = RegistryClient::new(trusting).unwrap();
    let error = client
        .pull(&registry.image("v1"), &no_credentials())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("not valid for name"), "{error}");
    assert_eq!(registry.requests().len(), 0);
}

#[tokio::test]
async fn a_registry_with_tls_cannot_redirect_to_plain_http() {
    let authority = TestAuthority::new("Registry CA");
    let registry = TestRegistry::start_with(&authority.server(&["127.0.0.1"])).await;
    let plain = TestRegistry::start().await;
    registry.store("v1", &packed("one"));
    plain.store("v1", &packed("one"));
    let mut trusting = options(&[]);
    trusting.certificate_authorities = authority.pem().into_bytes();
    let client = RegistryClient::new(trusting).unwrap();
    let elsewhere = format!("http://{}", plain.host());
    registry.fail(move |head, _| {
        let location = format!("{elsewhere}{}", head.uri.path());
        let is_blob = head.uri.path().contains("/blobs/");
        is_blob.then(|| with_header(response(307, ""), "location", &location))
    });
    let error = client
        .pull(&registry.image("v1"), &no_credentials())
        .await
        .unwrap_err();
    assert!(error.to_string().ends_with(": that is without TLS"), "{error}");
    let realm = format!("Bearer realm=\"http://{}/token\"", plain.host());
    registry.fail(move |_, _| Some(with_header(response(401, ""), "www-authenticate", &realm)));
    let password = credentials(
        &registry.host(),
        &json!({"username": "user", "password": "hunter2"}),
    );
    let error = client.pull(&registry.image("v1"), &password).await.unwrap_err();
    assert!(
        error.to_string().ends_with("tokens from a server without TLS"),
        "{error}"
    );
    assert_eq!(plain.requests().len(), 0);
}

#[tokio::test]
async fn plain_http_is_used_only_for_insecure_registries() {
    let registry = TestRegistry::start().await;
    registry.store("v1", &packed("one"));
    let client = RegistryClient::new(options(&[])).unwrap();
    let error = client
        .pull(&registry.image("v1"), &no_credentials())
        .await
        .unwrap_err();
    assert_eq!(error.reason(), "RegistryUnreachable", "{error}");
    assert_eq!(registry.requests().len(), 0);
}

#[test]
fn invalid_ca_certificates_are_reported() {
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for pem in ["nothing", broken, "-----BEGIN CERTIFICATE-----\n"] {
        let mut options = options(&[]);
        options.certificate_authorities = pem.as_bytes().to_vec();
        let error = RegistryClient::new(options).unwrap_err();
        assert_eq!(error.reason(), "CertificateAuthoritiesInvalid", "{pem}: {error}");
    }
}
