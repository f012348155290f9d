//! Discovery by a server, and validation of its handlers.

use runtime_hooks::{
    Catalog, Hook, HookMetadata, HookReference,
    cluster_api::{
        BeforeClusterCreate, BeforeClusterCreateRequest, BeforeClusterCreateResponse, BeforeClusterUpgrade,
        BeforeClusterUpgradeResponse, Discovery, DiscoveryRequest, DiscoveryResponse,
    },
    discovery::{self, FailurePolicy},
    server::{AddHandlerError, HandlerOptions, HookServer},
};
use serde_json::json;

use crate::fixture::{DISCOVERY, post};

/// A singleton hook.
struct Status;

impl Hook for Status {
    type Request = BeforeClusterCreateRequest;
    type Response = BeforeClusterCreateResponse;
    const GROUP: &'static str = "hooks.example.com";
    const VERSION: &'static str = "v1";
    const NAME: &'static str = "Status";
    const METADATA: HookMetadata = HookMetadata {
        singleton: true,
        ..HookMetadata::new()
    };
}

fn add<H: Hook>(
    server: HookServer,
    name: &str,
    timeout_seconds: Option<i32>,
    failure_policy: Option<FailurePolicy>,
) -> Result<HookServer, AddHandlerError> {
    let options = HandlerOptions {
        timeout_seconds,
        failure_policy,
        ..HandlerOptions::default()
    };
    server.handle::<H, _>(name, options, async |_, _| H::Response::default())
}

#[tokio::test]
async fn discovery_lists_handlers_with_their_options() {
    let server = HookServer::new(Catalog::cluster_api());
    assert_eq!(
        post(&server, DISCOVERY, "{}").await.response(),
        json!({
            "kind": "DiscoveryResponse", "apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1",
            "status": "Success",
        })
    );
    let server = add::<BeforeClusterUpgrade>(server, "second", Some(5), Some(FailurePolicy::Ignore)).unwrap();
    let server = add::<BeforeClusterCreate>(server, "third", Some(0), None).unwrap();
    let server = add::<BeforeClusterUpgrade>(server, "first", None, Some(FailurePolicy::Fail)).unwrap();
    let hook = |hook: &str| json!({"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": hook});
    for _ in 0..3 {
        let answer = post(&server, DISCOVERY, "{}").await;
        assert_eq!(
            answer.response()["handlers"],
            json!([
                {"name": "first", "requestHook": hook("BeforeClusterUpgrade"), "failurePolicy": "Fail"},
                {
                    "name": "second", "requestHook": hook("BeforeClusterUpgrade"), "timeoutSeconds": 5,
                    "failurePolicy": "Ignore",
                },
                {"name": "third", "requestHook": hook("BeforeClusterCreate"), "timeoutSeconds": 0},
            ])
        );
        let discovered = discovery::read_answer(&answer.body, &Catalog::cluster_api()).unwrap();
        assert_eq!(discovered.handlers.len(), 3);
    }
    let directly = server.call_directly::<Discovery>("", DiscoveryRequest {}).await;
    assert_eq!(directly.unwrap().handlers.len(), 3);
}

#[test]
fn an_invalid_handler_is_rejected() {
    let server = || {
        let server = HookServer::new(Catalog::cluster_api());
        add::<BeforeClusterUpgrade>(server, "first", None, None).unwrap()
    };
    let label = "a".repeat(63);
    for name in ["a", "1", "a-b", &*label] {
        assert!(
            add::<BeforeClusterUpgrade>(server(), name, Some(30), None).is_ok(),
            "{name}"
        );
    }
    for name in ["", "A", "a.b", "a/b", "-a", "a-", "..", "ä", &*"a".repeat(64)] {
        let refused = add::<BeforeClusterUpgrade>(server(), name, None, None).unwrap_err();
        assert_eq!(refused, AddHandlerError::Name(name.into()));
    }
    // Names are unique across hooks.
    for refused in [
        add::<BeforeClusterUpgrade>(server(), "first", None, None),
        add::<BeforeClusterCreate>(server(), "first", None, None),
    ] {
        assert_eq!(refused.unwrap_err().to_string(), r#"duplicate name "first""#);
    }
    for seconds in [-1, 31, i32::MIN, i32::MAX] {
        let refused = add::<BeforeClusterUpgrade>(server(), "second", Some(seconds), None).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("timeoutSeconds must be 0 to 30, not {seconds}")
        );
    }
    let refused = add::<Discovery>(server(), "second", None, None).unwrap_err();
    assert_eq!(refused, AddHandlerError::Discovery);
    let nothing = HookServer::new(Catalog::new());
    let refused = add::<BeforeClusterUpgrade>(nothing, "first", None, None).unwrap_err();
    assert_eq!(
        refused,
        AddHandlerError::UnknownHook(BeforeClusterUpgrade::reference())
    );
}

#[tokio::test]
async fn a_singleton_hook_also_has_a_path_without_name() {
    let mut catalog = Catalog::cluster_api();
    catalog.register::<Status>().unwrap();
    let server = add::<Status>(HookServer::new(catalog), "status", None, None).unwrap();
    for path in [
        "/hooks.example.com/v1/status",
        "/hooks.example.com/v1/status/status",
    ] {
        assert_eq!(post(&server, path, "{}").await.status, 200, "{path}");
    }
    let request = BeforeClusterCreateRequest::default();
    assert!(server.call_directly::<Status>("any", request).await.is_ok());
    let answer: DiscoveryResponse = server
        .call_directly::<Discovery>("", DiscoveryRequest {})
        .await
        .unwrap();
    assert_eq!(answer.handlers[0].request_hook.hook, "Status");
    let refused = add::<Status>(server, "other", None, None).unwrap_err();
    let status = HookReference {
        api_version: "hooks.example.com/v1".into(),
        hook: "Status".into(),
    };
    assert_eq!(refused, AddHandlerError::Singleton(status));
}

#[tokio::test]
async fn a_clone_does_not_get_later_handlers() {
    let before = HookServer::new(Catalog::cluster_api());
    let after = add::<BeforeClusterUpgrade>(before.clone(), "first", None, None).unwrap();
    let count = async |server: &HookServer| {
        let answer = server.call_directly::<Discovery>("", DiscoveryRequest {}).await;
        answer.unwrap().handlers.len()
    };
    assert_eq!((count(&before).await, count(&after).await), (0, 1));
    let response: BeforeClusterUpgradeResponse = after
        .call_directly::<BeforeClusterUpgrade>("first", Default::default())
        .await
        .unwrap();
    assert_eq!(response, BeforeClusterUpgradeResponse::default());
}
