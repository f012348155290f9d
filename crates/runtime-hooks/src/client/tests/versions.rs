//! Handlers that answer other versions than the caller's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::*;
use crate::{HookMetadata, HookRequest, HookResponse, hook::HookSettings, response::HookOutcome};

struct V1;
struct V2;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct RequestV1 {
    settings: HookSettings,
    name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct RequestV2 {
    settings: HookSettings,
    first: String,
    last: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct ResponseV1 {
    #[serde(default = "ResponseStatus::unset")]
    status: ResponseStatus,
    message: String,
    count: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct ResponseV2 {
    #[serde(default = "ResponseStatus::unset")]
    status: ResponseStatus,
    message: String,
    total: u32,
}

macro_rules! hook {
    ($hook:ident, $version:literal, $request:ident, $response:ident, $deprecated:literal) => {
        impl Hook for $hook {
            type Request = $request;
            type Response = $response;
            const GROUP: &'static str = "hooks.example.com";
            const VERSION: &'static str = $version;
            const NAME: &'static str = "Greet";
            const METADATA: HookMetadata = HookMetadata {
                deprecated: $deprecated,
                ..HookMetadata::new()
            };
        }

        impl HookRequest for $request {
            const HAS_SETTINGS: bool = true;
        }

        impl HookResponse for $response {
            fn outcome(&self) -> HookOutcome {
                HookOutcome {
                    status: self.status.clone(),
                    message: self.message.clone(),
                    retry_after_seconds: 0,
                }
            }

            fn set_outcome(&mut self, outcome: HookOutcome) {
                (self.status, self.message) = (outcome.status, outcome.message);
            }
        }
    };
}

hook!(V1, "v1", RequestV1, ResponseV1, true);
hook!(V2, "v2", RequestV2, ResponseV2, false);

fn catalog() -> Catalog {
    let mut catalog = Catalog::new();
    catalog.register::<V1>().unwrap().register::<V2>().unwrap();
    catalog
        .convert::<V2, V1>(
            |request| RequestV1 {
                settings: request.settings,
                name: format!("{} {}", request.first, request.last),
            },
            |response| ResponseV2 {
                status: response.status,
                message: response.message,
                total: response.count,
            },
        )
        .unwrap();
    catalog
}

fn answering(name: &str, hook: HookReference, failure_policy: FailurePolicy) -> Handler {
    Handler {
        hook,
        failure_policy,
        ..handler(name)
    }
}

async fn greet(client: &HookClient, handler: &str) -> Result<ResponseV2, String> {
    let request = RequestV2 {
        first: "A".into(),
        last: "B".into(),
        ..<_>::default()
    };
    let options = CallOptions::default();
    let called = client.call::<V2>(handler, "", &request, options);
    called.await.map_err(|error| error.to_string())
}

#[tokio::test]
async fn an_older_handler_is_called_in_its_version() {
    let mut bed = Bed::new();
    let older = answering("older", V1::reference(), FailurePolicy::Fail);
    let newer = answering("newer", V2::reference(), FailurePolicy::Fail);
    let reply = Reply::Json(json!({"status": "Success", "count": 7, "total": 8}));
    let stub = bed.with("a", vec![older, newer], reply).await;
    let mut counted = prometheus_client::registry::Registry::default();
    let client = HookClient {
        catalog: Arc::new(catalog()),
        ..bed.client()
    };
    let client = client.with_metrics(HookMetrics::register(&mut counted));
    assert_eq!(greet(&client, "older.a").await.unwrap().total, 7);
    assert_eq!(greet(&client, "newer.a").await.unwrap().total, 8);
    let asked = stub.asked.lock().clone();
    assert_eq!(
        asked[0].1,
        json!({
            "kind": "GreetRequest", "apiVersion": "hooks.example.com/v1", "settings": {}, "name": "A B",
        })
    );
    assert!(asked[0].0.starts_with("/x/hooks.example.com/v1/greet/older?"));
    assert_eq!(asked[1].1["first"], "A");

    let older = bed.registry.get("older.a").unwrap().unwrap();
    let request = json!({"first": "A", "last": "B"});
    let shown = client.request_json(&V2::reference(), &older, &request).unwrap();
    assert_eq!(shown, asked[0].1, "request_json returns the request that is sent");

    let all = client
        .call_all::<V2>("", &<_>::default(), CallOptions::default())
        .await
        .unwrap();
    assert_eq!(all.total, 0, "call_all drops other fields");

    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &counted).unwrap();
    for expected in [
        r#"capi_runtime_sdk_requests_total{host="a.system.svc:443",group="hooks.example.com",version="v2",hook="Greet",code="200",status="Success"} 4"#,
        r#"capi_runtime_sdk_handler_requests_total{handler="older.a",extension_config="a",group="hooks.example.com",version="v1",hook="Greet",status="Success"} 2"#,
        r#"capi_runtime_sdk_deprecated_requests_total{handler="older.a",extension_config="a",group="hooks.example.com",version="v1",hook="Greet"} 2"#,
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
    assert!(!text.contains(r#"deprecated_requests_total{handler="newer.a""#));
}

#[tokio::test]
async fn a_conversion_that_fails_is_never_ignored() {
    let mut bed = Bed::new();
    let older = answering("older", V1::reference(), FailurePolicy::Ignore);
    let unrelated = HookReference {
        api_version: "hooks.example.com/v0".into(),
        hook: "Greet".into(),
    };
    let unrelated = answering("unrelated", unrelated, FailurePolicy::Ignore);
    let stub = bed
        .with(
            "a",
            vec![older, unrelated],
            Reply::Json(json!({"status": "Success", "count": "many"})),
        )
        .await;
    let client = HookClient {
        catalog: Arc::new(catalog()),
        ..bed.client()
    };
    assert_eq!(
        greet(&client, "older.a").await.unwrap_err(),
        "failed to call extension handler \"older.a\": cannot convert hooks.example.com/v1, Hook=Greet to \
         hooks.example.com/v2, Hook=Greet: count: invalid type: string \"many\", expected u32"
    );
    assert_eq!(stub.hits(), 1);
    assert_eq!(
        greet(&client, "unrelated.a").await.unwrap_err(),
        "failed to call extension handler \"unrelated.a\": there is no conversion from hooks.example.com/v2, \
         Hook=Greet to hooks.example.com/v0, Hook=Greet"
    );
    assert_eq!(stub.hits(), 1);
}

#[tokio::test]
async fn calls_are_counted_by_how_they_ended() {
    let mut bed = Bed::new();
    let brief = |handler| Handler {
        timeout_seconds: Some(1),
        ..handler
    };
    let handlers = [handler("x"), ignoring("y")].map(brief);
    let stub = bed.with("a", handlers.into(), success()).await;
    let mut counted = prometheus_client::registry::Registry::default();
    let client = bed.client().with_metrics(HookMetrics::register(&mut counted));
    let replies = [
        success(),
        Reply::Json(json!({"status": "Failure"})),
        Reply::Json(json!({"status": "?"})),
        Reply::Text(StatusCode::NOT_FOUND, String::new()),
        Reply::Silence,
    ];
    for reply in replies {
        stub.set(reply);
        let _ = call(&client, "x.a").await;
        let _ = call(&client, "y.a").await;
    }
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &counted).unwrap();
    for (code, status) in [
        ("200", "Success"),
        ("200", "Failure"),
        ("200", "Unknown"),
        ("404", "Unknown"),
        ("<error>", "Unknown"),
    ] {
        let expected = format!(
            "capi_runtime_sdk_requests_total{{host=\"a.system.svc:443\",group=\"hooks.runtime.cluster.x-k8s.io\",version=\"v1alpha1\",hook=\"BeforeClusterCreate\",code=\"{code}\",status=\"{status}\"}} 2\n"
        );
        assert!(text.contains(&expected), "{expected} is not in\n{text}");
    }
    assert!(text.contains("capi_runtime_sdk_ignored_failures_total{handler=\"y.a\""));
    assert!(!text.contains("capi_runtime_sdk_ignored_failures_total{handler=\"x.a\""));
    assert!(text.contains("capi_runtime_sdk_request_duration_seconds_count{host=\"a.system.svc:443\""));
}
