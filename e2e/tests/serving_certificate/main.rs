//! Serving certificates on a sandbox: issued, injected, rotated, repaired, while a client dials the server all the time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed test is what they are for"
)]

mod bed;
mod server;

use std::time::Duration;

use serde_json::{Value, json};

use bed::{Bed, CRDS, HOOKS, SECRETS, SERVICES, certificates};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaf_and_ca_rotate_without_a_failed_handshake() {
    let bed = Bed::start().await;
    bed.create(HOOKS, &bed::configuration("hooks")).await;
    bed.create(CRDS, &bed::crd()).await;
    bed.serve().await;
    bed.create(&certificates("system"), &bed::certificate("hook", "hook-cert"))
        .await;
    let stable = bed.stable("hook", |_| true).await;
    assert_eq!(stable["status"]["targets"], json!({"total": 2, "current": 2}));
    assert_eq!(stable["status"]["endpoints"], json!({"ready": 1, "current": 1}));

    let dialling = bed.dial_through([
        (format!("{HOOKS}/hooks"), "/webhooks/0/clientConfig/caBundle"),
        (
            format!("{CRDS}/widgets.example.com"),
            "/spec/conversion/webhook/clientConfig/caBundle",
        ),
    ]);
    let crd = format!("{CRDS}/widgets.example.com");
    let before = bed.get(&crd).await.unwrap();
    let chain = bed.secret("/data/tls.crt").await;
    bed.rotate("hook", "leaf:test").await;
    bed.eventually("the leaf is another", async || {
        bed.secret("/data/tls.crt").await != chain
    })
    .await;
    bed.stable("hook", |_| true).await;
    let after = bed.get(&crd).await.unwrap();
    assert_eq!(
        after["metadata"]["generation"], before["metadata"]["generation"],
        "a new leaf touches no target"
    );

    for generation in [2, 3] {
        bed.rotate("hook", &format!("ca:test-{generation}")).await;
        let rotated = |status: &Value| status.pointer("/ca/current/generation") == Some(&json!(generation));
        bed.stable("hook", rotated).await;
    }
    let after = bed.get(&crd).await.unwrap();
    let writes = |object: &Value| object["metadata"]["generation"].as_i64().unwrap();
    assert_eq!(writes(&after) - writes(&before), 2, "one write for each rotation");
    let managers = after["metadata"]["managedFields"].as_array().unwrap();
    assert!(
        managers.iter().all(|entry| entry["manager"] != "windlass-inject"),
        "{managers:?}"
    );
    dialling.finish().await;
    bed.idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_damaged_or_deleted_is_repaired() {
    let bed = Bed::start().await;
    bed.create(HOOKS, &bed::configuration("hooks")).await;
    bed.serve().await;
    bed.create(&certificates("system"), &bed::certificate("hook", "hook-cert"))
        .await;
    bed.stable("hook", |_| true).await;
    let dialling = bed.dial_through([(format!("{HOOKS}/hooks"), "/webhooks/0/clientConfig/caBundle")]);

    // What the server serves goes on being trusted through both.
    for secret in [
        format!("{SECRETS}/hook-cert"),
        "/api/v1/namespaces/windlass-system/secrets/system.hook".to_owned(),
    ] {
        let uid = bed.get(&secret).await.unwrap()["metadata"]["uid"].clone();
        bed.delete(&secret).await;
        bed.eventually("the Secret is there again", async || {
            bed.get(&secret)
                .await
                .is_some_and(|secret| secret["metadata"]["uid"] != uid)
        })
        .await;
        bed.idle().await;
        bed.stable("hook", |_| true).await;
    }
    dialling.finish().await;

    let garbage =
        json!([{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": "Z2FyYmFnZQ=="}]);
    bed.patch(&format!("{HOOKS}/hooks"), &garbage).await;
    bed.eventually("the target carries the trust bundle again", async || {
        let target = bed.get(&format!("{HOOKS}/hooks")).await.unwrap();
        target.pointer("/webhooks/0/clientConfig/caBundle").cloned() == bed.secret("/data/ca.crt").await
    })
    .await;
    bed.idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_of_somebody_else_stays_as_it_is() {
    let bed = Bed::start().await;
    let foreign = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "system", "name": "hook-cert"},
        "data": {"password": "c2VjcmV0"},
    });
    bed.create(SECRETS, &foreign).await;
    bed.create(&certificates("system"), &bed::certificate("hook", "hook-cert"))
        .await;
    let path = format!("{}/hook", certificates("system"));
    bed.eventually("it is said", async || {
        let object = bed.get(&path).await.unwrap();
        bed::reason(&object, "Ready") == Some("ForeignSecret")
    })
    .await;
    let secret = bed.get(&format!("{SECRETS}/hook-cert")).await.unwrap();
    assert_eq!(secret["data"], foreign["data"]);

    // Once it is gone, nothing is in the way.
    bed.delete(&format!("{SECRETS}/hook-cert")).await;
    bed.patch(
        &path,
        &json!([{"op": "add", "path": "/metadata/annotations", "value": {"note": "look again"}}]),
    )
    .await;
    bed.eventually("it is issued", async || {
        bed.secret("/data/tls.crt").await.is_some()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_is_managed_elsewhere_is_named_and_keeps_no_other_waiting() {
    let bed = Bed::start().await;
    let mut elsewhere = bed::configuration("elsewhere");
    elsewhere["metadata"]["annotations"]["cert-manager.io/inject-ca-from"] = "system/other".into();
    bed.create(HOOKS, &elsewhere).await;
    bed.create(HOOKS, &bed::configuration("hooks")).await;
    bed.create(&certificates("system"), &bed::certificate("hook", "hook-cert"))
        .await;
    bed.eventually("the other target is current, and this one named", async || {
        let object = bed
            .get(&format!("{}/hook", certificates("system")))
            .await
            .unwrap();
        let targets = &object["status"]["targets"];
        targets["current"] == 1 && targets["failing"][0]["name"] == "elsewhere"
    })
    .await;
    bed.idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_annotated_service_gets_a_certificate_and_loses_it() {
    let bed = Bed::start().await;
    let mut service = bed::service();
    service["metadata"]["annotations"] = json!({"windlass.dev/serving-cert-secret": "hook-cert"});
    bed.create(SERVICES, &service).await;
    bed.eventually("it is issued", async || {
        bed.secret("/data/tls.crt").await.is_some()
    })
    .await;
    let authority = "/api/v1/namespaces/windlass-system/secrets/system.hook";
    assert!(bed.get(authority).await.is_some());
    let patch = json!([{"op": "remove", "path": "/metadata/annotations"}]);
    bed.patch(&format!("{SERVICES}/hook"), &patch).await;
    bed.eventually("both Secrets are gone", async || {
        bed.secret("/data").await.is_none() && bed.get(authority).await.is_none()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_may_ask_for_any_secret_that_lets_it() {
    let bed = Bed::start().await;
    bed.create(&certificates("system"), &bed::certificate("hook", "hook-cert"))
        .await;
    bed.eventually("it is issued", async || {
        bed.secret("/data/ca.crt").await.is_some()
    })
    .await;
    let trust = bed.secret("/data/ca.crt").await.unwrap();
    let mut target = bed::configuration("direct");
    target["metadata"]["annotations"] = json!({"windlass.dev/inject-ca-from-secret": "system/copied"});
    target["webhooks"][0]["clientConfig"] = json!({"url": "https://elsewhere.example.com"});
    bed.create(HOOKS, &target).await;
    let copied = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"namespace": "system", "name": "copied", "annotations": {"windlass.dev/allow-direct-injection": "true"}},
        "data": {"ca.crt": trust},
    });
    bed.create(SECRETS, &copied).await;
    bed.eventually("the target carries it", async || {
        let target = bed.get(&format!("{HOOKS}/direct")).await.unwrap();
        target.pointer("/webhooks/0/clientConfig/caBundle") == Some(&trust)
    })
    .await;
    tokio::time::timeout(Duration::from_secs(20), bed.idle())
        .await
        .unwrap();
}
