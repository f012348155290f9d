mod hostile;
mod many;
mod stub;
mod versions;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use http::StatusCode;
use serde_json::{Value, json};
use webhook_transport::{
    ServerReference,
    client::{Transport, TransportOptions},
};

use self::stub::{Names, Reply, Stub, success};
use super::*;
use crate::{
    Hook, HookReference,
    cluster_api::{
        BeforeClusterCreate, BeforeClusterCreateRequest, BeforeClusterCreateResponse, BeforeClusterUpgrade,
    },
    discovery::{FailurePolicy, Handler},
    registry::ExtensionConfig,
    response::ResponseStatus,
};

/// Test servers by name, each registered by an ExtensionConfig with handlers.
struct Bed {
    registry: Arc<Registry>,
    names: Names,
}

struct Labels(BTreeMap<&'static str, Value>);

fn handler(name: &str) -> Handler {
    Handler {
        name: name.to_owned(),
        hook: BeforeClusterCreate::reference(),
        timeout_seconds: Some(30),
        failure_policy: FailurePolicy::Fail,
    }
}

fn ignoring(name: &str) -> Handler {
    Handler {
        failure_policy: FailurePolicy::Ignore,
        ..handler(name)
    }
}

fn outcome(message: &str, retry_after_seconds: i32) -> Reply {
    Reply::Json(json!({"status": "Success", "message": message, "retryAfterSeconds": retry_after_seconds}))
}

impl Bed {
    fn new() -> Self {
        Self {
            registry: Arc::new(Registry::listed()),
            names: Names::default(),
        }
    }

    fn config(name: &str, ca_bundle: &str) -> ExtensionConfig {
        ExtensionConfig {
            name: name.to_owned(),
            resource_version: "1".into(),
            server: ServerReference::service("system", name, 443, "/x", ca_bundle.to_owned()).unwrap(),
            namespace_selector: json!({}),
            settings: BTreeMap::new(),
        }
    }

    /// Starts a server for the ExtensionConfig `name`.
    async fn with(&mut self, name: &str, handlers: Vec<Handler>, reply: Reply) -> Stub {
        let host = format!("{name}.system.svc");
        let stub = Stub::start(&host, reply).await;
        self.names.0.insert(host, stub.address);
        self.registry
            .register(Self::config(name, &stub.ca_bundle), handlers)
            .unwrap();
        stub
    }

    fn client(&self) -> HookClient {
        let transport = Transport::new(TransportOptions {
            resolver: Arc::new(self.names.clone()),
            proxies: false,
            ..TransportOptions::default()
        });
        HookClient::new(Arc::new(Catalog::cluster_api()), self.registry.clone(), transport)
    }
}

impl NamespaceLabels for Labels {
    fn labels(&self, namespace: String) -> BoxFuture<'_, Result<Value, NamespaceError>> {
        let labels = self.0.get(&*namespace).cloned();
        async move { labels.ok_or(NamespaceError::NotFound(namespace)) }.boxed()
    }
}

async fn call(client: &HookClient, handler: &str) -> Result<BeforeClusterCreateResponse, String> {
    let request = BeforeClusterCreateRequest::default();
    let options = CallOptions::default();
    let called = client.call::<BeforeClusterCreate>(handler, "default", &request, options);
    called.await.map_err(|error| error.to_string())
}

async fn call_all(client: &HookClient, options: CallOptions) -> Result<BeforeClusterCreateResponse, String> {
    let request = BeforeClusterCreateRequest::default();
    let called = client.call_all::<BeforeClusterCreate>("default", &request, options);
    called.await.map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_handler_is_called_at_its_path_with_merged_settings() {
    let mut bed = Bed::new();
    let stub = bed.with("ext1", vec![], outcome("hello", 5)).await;
    let mut config = Bed::config("ext1", &stub.ca_bundle);
    config.settings = BTreeMap::from([("a".into(), "config".into()), ("b".into(), "config".into())]);
    bed.registry.register(config, vec![handler("first")]).unwrap();
    let mut request = BeforeClusterCreateRequest::default();
    request.settings.insert("b".into(), "request".into());
    let client = bed.client();
    let response = client
        .call::<BeforeClusterCreate>("first.ext1", "default", &request, CallOptions::default())
        .await
        .unwrap();
    assert_eq!((&*response.message, response.retry_after_seconds), ("hello", 5));
    assert_eq!(
        request.settings.len(),
        1,
        "the caller's own settings are unchanged"
    );
    let (path, body) = stub.asked.lock()[0].clone();
    let (path, query) = path.split_once('?').unwrap();
    assert_eq!(
        path,
        "/x/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/first"
    );
    assert!(query.starts_with("timeout=") && query.ends_with("ms"), "{query}");
    assert_eq!(body["settings"], json!({"a": "config", "b": "request"}));
    assert_eq!(body["kind"], "BeforeClusterCreateRequest");
}

#[tokio::test]
async fn inapplicable_handlers_are_not_called() {
    let mut bed = Bed::new();
    let stub = bed.with("ext1", vec![handler("first")], success()).await;
    let client = bed.client();
    assert_eq!(
        call(&client, "second.ext1").await.unwrap_err(),
        "extension handler \"second.ext1\" not found"
    );
    let other = client
        .call::<BeforeClusterUpgrade>("first.ext1", "", &<_>::default(), CallOptions::default())
        .await
        .unwrap_err();
    assert_eq!(
        other.to_string(),
        "extension handler \"first.ext1\" answers BeforeClusterCreate.hooks.runtime.cluster.x-k8s.io, \
         not BeforeClusterUpgrade.hooks.runtime.cluster.x-k8s.io"
    );
    let unknown = HookReference {
        api_version: "example.com/v1".into(),
        hook: "BeforeCoffee".into(),
    };
    let unknown = client
        .call_json(&unknown, "first.ext1", "", json!({}), CallOptions::default())
        .await;
    assert!(matches!(unknown, Err(HookCallError::UnknownHook(_))));
    let cold = HookClient::new(Arc::default(), Arc::default(), client.transport.clone());
    assert!(matches!(
        HookClient {
            catalog: client.catalog.clone(),
            ..cold
        }
        .handlers::<BeforeClusterCreate>("default")
        .await,
        Err(HookCallError::NotListed(_))
    ));
    assert_eq!(stub.hits(), 0);
}

#[tokio::test]
async fn the_failure_policy_applies_to_failed_calls() {
    let text = |status, text: &str| Reply::Text(status, text.to_owned());
    let success_but = Reply::Json(json!({"status": "Success", "retryAfterSeconds": "x"}));
    for (reply, expected, is_ignored) in [
        (success(), "", false),
        (
            Reply::Json(json!({"status": "Failure", "message": "no quota"})),
            "got failure response with message: no quota",
            false,
        ),
        (
            Reply::Json(json!({"Status": "success", "Message": "a"})),
            "got unknown response status \"success\" with message: a",
            false,
        ),
        (
            Reply::Json(json!({})),
            "got unknown response status \"\" with message: ",
            false,
        ),
        (
            text(StatusCode::NOT_FOUND, "no such\npath"),
            "HTTP 404 Not Found: no such path",
            true,
        ),
        (
            text(StatusCode::CREATED, r#"{"status": "Success"}"#),
            "HTTP 201 Created: {\"status\": \"Success\"}",
            true,
        ),
        (text(StatusCode::NO_CONTENT, ""), "HTTP 204 No Content", true),
        (
            text(StatusCode::OK, "<html>"),
            "failed to decode its response: is not JSON: ",
            true,
        ),
        (
            success_but,
            "failed to decode its response: retryAfterSeconds: ",
            true,
        ),
    ] {
        let mut bed = Bed::new();
        bed.with("ext1", vec![handler("fail"), ignoring("ignore")], reply.clone())
            .await;
        let client = bed.client().with_circuit_breaker(None);
        for (name, is_ignored) in [("fail.ext1", false), ("ignore.ext1", is_ignored)] {
            let called = call(&client, name).await;
            if expected.is_empty() || is_ignored {
                let response = called.unwrap();
                assert_eq!(
                    response,
                    BeforeClusterCreateResponse::default(),
                    "the response is the default: {reply:?}"
                );
            } else {
                let expected = format!("failed to call extension handler {name:?}: {expected}");
                let error = called.unwrap_err();
                assert!(error.starts_with(&expected), "{error} and not {expected}");
            }
        }
    }
}

#[tokio::test]
async fn an_unreachable_server_is_ignored_by_policy() {
    let bed = Bed::new();
    let ca_bundle = Stub::start("a", success()).await.ca_bundle;
    let config = Bed::config("ext1", &ca_bundle);
    bed.registry
        .register(config, vec![handler("fail"), ignoring("ignore")])
        .unwrap();
    let client = bed.client();
    assert_eq!(
        call(&client, "ignore.ext1").await.unwrap().status,
        ResponseStatus::Success
    );
    assert!(
        call(&client, "fail.ext1")
            .await
            .unwrap_err()
            .contains("cannot connect: host has no address")
    );

    let config = Bed::config("ext1", "garbage");
    bed.registry.register(config, vec![ignoring("ignore")]).unwrap();
    assert!(
        call(&client, "ignore.ext1")
            .await
            .unwrap_err()
            .contains("the CA bundle has no usable certificate"),
        "an invalid configuration is not a failure of the server"
    );
    let config = Bed::config("ext1", "");
    bed.registry.register(config, vec![ignoring("ignore")]).unwrap();
    assert!(
        call(&client, "ignore.ext1")
            .await
            .unwrap_err()
            .contains("there is no CA bundle")
    );
}

#[tokio::test]
async fn handlers_are_called_in_order_until_one_fails() {
    let mut bed = Bed::new();
    assert_eq!(
        call_all(&bed.client(), CallOptions::default()).await,
        Ok(<_>::default())
    );
    let first = bed
        .with("a", vec![handler("x"), handler("y")], outcome("from a", 0))
        .await;
    let second = bed.with("b", vec![handler("x")], outcome("", 5)).await;
    let third = bed.with("c", vec![handler("z")], outcome("from c", 4)).await;
    let client = bed.client();
    for order in [CallOrder::Sequential, CallOrder::Concurrent(8)] {
        let options = CallOptions {
            order,
            ..<_>::default()
        };
        let response = call_all(&client, options).await.unwrap();
        assert_eq!(
            (&*response.message, response.retry_after_seconds),
            ("from a, from a, from c", 4)
        );
    }
    assert_eq!([&first, &second, &third].map(Stub::hits), [4, 2, 2]);

    second.set(Reply::Json(json!({"status": "Failure", "message": "not yet"})));
    let failed = call_all(&client, CallOptions::default()).await.unwrap_err();
    assert_eq!(
        failed,
        "failed to call extension handler \"x.b\": got failure response with message: not yet"
    );
    assert_eq!(
        [&first, &second, &third].map(Stub::hits),
        [5, 3, 2],
        "later handlers are not called"
    );
}

#[tokio::test]
async fn handlers_apply_to_selected_namespaces() {
    let mut bed = Bed::new();
    bed.with("all", vec![handler("x")], success()).await;
    let some = bed.with("some", vec![], success()).await;
    let mut config = Bed::config("some", &some.ca_bundle);
    config.namespace_selector = json!({"matchLabels": {"team": "a"}});
    bed.registry.register(config, vec![handler("x")]).unwrap();
    let labels = Labels(BTreeMap::from([
        ("ours", json!({"team": "a"})),
        ("theirs", json!({"team": "b"})),
    ]));
    let client = bed.client().with_namespaces(Arc::new(labels));
    let names = async |namespace: &str| client.handlers::<BeforeClusterCreate>(namespace).await;
    assert_eq!(names("ours").await.unwrap(), ["x.all", "x.some"]);
    assert_eq!(names("theirs").await.unwrap(), ["x.all"]);
    for namespace in ["other", ""] {
        assert_eq!(
            names(namespace).await.unwrap_err().to_string(),
            format!(
                "cannot determine whether extension handler \"x.some\" applies: namespace {namespace:?} not found"
            )
        );
    }
    let request = BeforeClusterCreateRequest::default();
    let theirs = client
        .call::<BeforeClusterCreate>("x.some", "theirs", &request, CallOptions::default())
        .await;
    assert_eq!(
        theirs.unwrap_err().to_string(),
        "extension handler \"x.some\" is not for namespace \"theirs\""
    );
}

#[tokio::test]
async fn responses_are_cached_on_request() {
    let mut bed = Bed::new();
    let stub = bed.with("ext1", vec![handler("first")], outcome("one", 0)).await;
    let client = bed.client();
    let asked = async |setting: &str, cached| {
        let mut request = BeforeClusterCreateRequest::default();
        request.settings.insert("a".into(), setting.into());
        let options = CallOptions {
            cached,
            ..<_>::default()
        };
        let called = client.call::<BeforeClusterCreate>("first.ext1", "default", &request, options);
        called.await.map(|response| response.message).unwrap_or_default()
    };
    assert_eq!(asked("x", true).await, "one");
    stub.set(outcome("two", 0));
    assert_eq!(asked("x", true).await, "one");
    assert_eq!(stub.hits(), 1);
    assert_eq!(asked("y", true).await, "two", "another request");
    assert_eq!(asked("x", false).await, "two", "caching is not enabled");
    let mut config = Bed::config("ext1", &stub.ca_bundle);
    config.resource_version = "2".into();
    bed.registry.register(config, vec![handler("first")]).unwrap();
    assert_eq!(asked("x", true).await, "two", "another ExtensionConfig");
    stub.set(Reply::Json(json!({"status": "Failure"})));
    assert_eq!(asked("z", true).await, "");
    stub.set(outcome("three", 0));
    assert_eq!(asked("z", true).await, "three", "a failure is not cached");
}
