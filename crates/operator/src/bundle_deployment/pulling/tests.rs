//! Pulls from a registry in this process.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use oci::{ImageReference, PackedImage, RegistriesConfig, RegistryOptions};
use serde_json::{Value, json};
use test_authority::TestAuthority;
use test_registry::{TestRegistry, response};
use windlass_api::ImageSource;
use windlass_cluster::worker::Queue;

use super::{
    error::NamedBy,
    puller::{ImagePuller, SECRET_KEY, SECRET_TYPE, WantedImage},
};
use crate::bundle_deployment::{loading::bundle_digest, memory::PullFailure, tests::Server};

pub(super) const SECRET: &str = "/api/v1/namespaces/windlass-system/secrets/pull";

/// One that asks `registry` and reads what `readable` has.
pub(super) async fn puller(registry: &TestRegistry, readable: &[(&str, Value)]) -> Arc<ImagePuller> {
    let mut insecure = String::new();
    writeln!(
        insecure,
        "[[registry]]\nlocation = {:?}\ninsecure = true",
        registry.host()
    )
    .unwrap();
    puller_by(&insecure, readable).await
}

/// One that asks registries as this registries.conf says, and reads what `readable` has.
pub(super) async fn puller_by(registries: &str, readable: &[(&str, Value)]) -> Arc<ImagePuller> {
    let server = Server::new(json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "BundleDeployment", "metadata": {"name": "a"},
        "spec": {"namespace": "a", "source": {}},
    }));
    let kinds = json!({"resources": [{"name": "secrets", "kind": "Secret", "namespaced": true}]});
    server.readable.lock().insert("/api/v1".to_owned(), kinds);
    for (path, object) in readable {
        server.readable.lock().insert((*path).to_owned(), object.clone());
    }
    let options = RegistryOptions {
        registries: RegistriesConfig::parse("registries.conf", registries).unwrap(),
        // A machine may have none of its own.
        certificate_authorities: TestAuthority::new("Unused").pem().into_bytes(),
        backoff: Duration::from_millis(1),
        idle_timeout: Duration::from_millis(500),
        proxies: false,
        ..RegistryOptions::default()
    };
    let context = server.reconciler().await.context.clone();
    let every = Duration::from_secs(300);
    Arc::new(ImagePuller::new(&context, Arc::new(Queue::new()), options, every))
}

pub(super) fn packed(csv: &str) -> PackedImage {
    let files = [
        ("manifests/csv.yaml", csv),
        ("metadata/annotations.yaml", ""),
        ("tests/a", ""),
    ];
    let files = files.map(|(path, content)| (path.to_owned(), content.as_bytes().to_vec()));
    PackedImage::new(&files.into(), &BTreeMap::new()).unwrap()
}

pub(super) fn wanted(reference: &ImageReference, pull_secret: Option<&str>) -> WantedImage {
    WantedImage {
        name: "a".to_owned(),
        source: ImageSource {
            reference: reference.to_string(),
            pull_secret: pull_secret.map(str::to_owned),
        },
        reference: reference.clone(),
        by: NamedBy::Image,
        recorded: BTreeMap::new(),
    }
}

pub(super) async fn failure(puller: &ImagePuller, wanted: &WantedImage) -> PullFailure {
    PullFailure::of(&puller.pull(wanted).await.unwrap_err(), wanted.by)
}

/// The Secret `pull`, of this type and with this content.
pub(super) fn secret(kind: &str, content: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull"}, "type": kind,
        "data": {SECRET_KEY: STANDARD.encode(content)},
    })
}

#[tokio::test]
async fn a_bundle_is_what_is_in_its_two_folders() {
    let registry = TestRegistry::start().await;
    let stored = registry.store("v1", &packed("one"));
    let puller = puller(&registry, &[]).await;
    let found = puller.pull(&wanted(&registry.image("v1"), None)).await.unwrap();
    assert_eq!(found.image, registry.image("v1").with_digest(stored).to_string());
    let files = found.files.unwrap();
    let paths: Vec<_> = files.keys().map(String::as_str).collect();
    assert_eq!(paths, ["manifests/csv.yaml", "metadata/annotations.yaml"]);
    assert_eq!(found.digest, bundle_digest(&files));
}

#[tokio::test]
async fn what_is_recorded_is_not_pulled_again() {
    let registry = TestRegistry::start().await;
    let stored = registry.store("v1", &packed("one"));
    let puller = puller(&registry, &[]).await;
    let pinned = registry.image("v1").with_digest(stored);
    for (reference, requests) in [(registry.image("v1"), 1), (pinned.clone(), 0)] {
        registry.fail(|_, _| None);
        let mut wanted = wanted(&reference, None);
        wanted.recorded = BTreeMap::from([(pinned.to_string(), "known".to_owned())]);
        let found = puller.pull(&wanted).await.unwrap();
        assert_eq!((found.digest.as_str(), found.files), ("known", None));
        assert_eq!(registry.requests().len(), requests, "{reference}");
    }
}

#[tokio::test]
async fn why_an_image_is_not_pulled_says_what_to_do_and_no_secret() {
    let registry = TestRegistry::start().await;
    registry.store("v1", &packed("one"));
    let cases = [
        (
            secret("Opaque", "{}"),
            "PullSecretInvalid",
            "type must be kubernetes.io/dockerconfigjson",
        ),
        (
            secret(SECRET_TYPE, r#"{"auths": {"a.test": {"auth": "hunter2!"}}}"#),
            "PullSecretInvalid",
            "windlass-system/pull: auths[\"a.test\"].auth: must be base64 of USER:PASSWORD",
        ),
    ];
    for (secret, reason, words) in cases {
        let puller = puller(&registry, &[(SECRET, secret)]).await;
        let failure = failure(&puller, &wanted(&registry.image("v1"), Some("pull"))).await;
        assert_eq!((failure.reason, failure.is_transient), (reason, false));
        assert!(failure.message.contains(words), "{}", failure.message);
        assert!(!failure.message.contains("hunter2"), "{}", failure.message);
    }
    let puller = puller(&registry, &[]).await;
    let unread = failure(&puller, &wanted(&registry.image("v1"), Some("pull"))).await;
    assert_eq!((unread.reason, unread.is_transient), ("PullSecretUnread", true));
    let absent = failure(&puller, &wanted(&registry.image("v2"), None)).await;
    assert_eq!((absent.reason, absent.is_transient), ("ImageNotFound", false));
    assert!(absent.message.contains("push it there"), "{}", absent.message);
    registry.fail(|_, _| Some(response(503, "")));
    let down = failure(&puller, &wanted(&registry.image("v1"), None)).await;
    assert_eq!((down.reason, down.is_transient), ("RegistryUnavailable", true));
    registry.fail(|_, _| None);
    let bomb = PackedImage::new(
        &BTreeMap::from([("manifests/a".to_owned(), vec![0; 8 << 20])]),
        &BTreeMap::new(),
    );
    registry.store("bomb", &bomb.unwrap());
    let refused = failure(&puller, &wanted(&registry.image("bomb"), None)).await;
    assert_eq!((refused.reason, refused.is_transient), ("ImageInvalid", false));
    assert!(
        refused.message.contains("200 times its size"),
        "{}",
        refused.message
    );
}
