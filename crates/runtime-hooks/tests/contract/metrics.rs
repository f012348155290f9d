//! Metrics with the names that Cluster API's dashboards use (`internal/runtime/metrics/metrics.go`).

use prometheus_client::{encoding::text::encode, registry::Registry};
use runtime_hooks::client::HookMetrics;
use serde_json::json;

use crate::peer::{Answer, call, config, pair};

#[tokio::test]
async fn calls_and_discoveries_are_counted() {
    let (peer, client) = pair(Answer::json(&json!({"status": "Success"}))).await;
    let mut counted = Registry::default();
    let client = client.with_metrics(HookMetrics::register(&mut counted));
    call(&client, "fail.ext1", false).await.unwrap();
    let config = config("ext1", "ext1", &peer.ca_bundle);
    client.discover(&config).await.unwrap();
    peer.set(Answer::text(""));
    client.discover(&config).await.unwrap_err();
    let mut text = String::new();
    encode(&mut text, &counted).unwrap();
    let labels = r#"host="ext1.system.svc:443",group="hooks.runtime.cluster.x-k8s.io",version="v1alpha1",hook="BeforeClusterCreate""#;
    let discovery = labels.replace("BeforeClusterCreate", "Discovery");
    let buckets: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("capi_runtime_sdk_request_duration_seconds_bucket{le=\""))
        .filter_map(|line| line.split_once('"').map(|(bound, _)| bound))
        .collect();
    let all = "0.005 0.025 0.05 0.1 0.2 0.4 0.6 0.8 1.0 1.25 1.5 2.0 3.0 4.0 5.0 6.0 8.0 10.0 15.0 20.0 30.0 45.0 60.0 +Inf";
    // One call of the hook and one of Discovery.
    assert_eq!(buckets[..24].join(" "), all);
    assert_eq!(buckets[24..].join(" "), all);
    for expected in [
        format!("capi_runtime_sdk_request_duration_seconds_count{{{labels}}} 1"),
        format!("capi_runtime_sdk_requests_total{{{labels},code=\"200\",status=\"Success\"}} 1"),
        format!("capi_runtime_sdk_requests_total{{{discovery},code=\"200\",status=\"Success\"}} 1"),
        format!("capi_runtime_sdk_requests_total{{{discovery},code=\"200\",status=\"Unknown\"}} 1"),
        r#"capi_runtime_sdk_discoveries_total{extension_config="ext1",result="Success"} 1"#.to_owned(),
        r#"capi_runtime_sdk_discoveries_total{extension_config="ext1",result="Failure"} 1"#.to_owned(),
    ] {
        assert!(text.contains(&expected), "{expected} is not in\n{text}");
    }
}
