//! Serving certificates on a sandbox: issued, injected, rotated, repaired, while a client dials the server all the time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed test is what they are for"
)]

mod operated_sandbox;
mod server;

use std::time::Duration;

use serde_json::{Value, json};

use operated_sandbox::{CRDS, HOOKS, OperatedSandbox, SECRETS, SERVICES, certificates};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaf_and_ca_rotate_without_a_failed_handshake() {
    let sandbox = OperatedSandbox::start().await;
    sandbox
        .create(HOOKS, &operated_sandbox::configuration("hooks"))
        .await;
    sandbox.create(CRDS, &operated_sandbox::crd()).await;
    sandbox.serve().await;
    sandbox
        .create(
            &certificates("system"),
            &operated_sandbox::certificate("hook", "hook-cert"),
        )
        .await;
    let stable = sandbox.stable("hook", |_| true).await;
    assert_eq!(stable["status"]["targets"], json!({"total": 2, "current": 2}));
    assert_eq!(stable["status"]["endpoints"], json!({"ready": 1, "current": 1}));

    let dialling = sandbox.dial_through([
        (format!("{HOOKS}/hooks"), "/webhooks/0/clientConfig/caBundle"),
        (
            format!("{CRDS}/widgets.example.com"),
            "/spec/conversion/webhook/clientConfig/caBundle",
        ),
    ]);
    let crd = format!("{CRDS}/widgets.example.com");
    let before = sandbox.get(&crd).await.unwrap();
    let chain = sandbox.secret("/data/tls.crt").await;
    sandbox.rotate("hook", "leaf:test").await;
    sandbox
        .eventually("the leaf is another", async || {
            sandbox.secret("/data/tls.crt").await != chain
        })
        .await;
    sandbox.stable("hook", |_| true).await;
    let after = sandbox.get(&crd).await.unwrap();
    assert_eq!(
        after["metadata"]["generation"], before["metadata"]["generation"],
        "a new leaf touches no target"
    );

    for generation in [2, 3] {
        sandbox.rotate("hook", &format!("ca:test-{generation}")).await;
        let rotated = |status: &Value| status.pointer("/ca/current/generation") == Some(&json!(generation));
        sandbox.stable("hook", rotated).await;
    }
    let after = sandbox.get(&crd).await.unwrap();
    let writes = |object: &Value| object["metadata"]["generation"].as_i64().unwrap();
    assert_eq!(writes(&after) - writes(&before), 2, "one write for each rotation");
    dialling.finish().await;
    sandbox.idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_damaged_or_deleted_is_repaired() {
    let sandbox = OperatedSandbox::start().await;
    sandbox
        .create(HOOKS, &operated_sandbox::configuration("hooks"))
        .await;
    sandbox.serve().await;
    sandbox
        .create(
            &certificates("system"),
            &operated_sandbox::certificate("hook", "hook-cert"),
        )
        .await;
    sandbox.stable("hook", |_| true).await;
    let dialling = sandbox.dial_through([(format!("{HOOKS}/hooks"), "/webhooks/0/clientConfig/caBundle")]);

    // What the server serves goes on being trusted through both.
    for secret in [
        format!("{SECRETS}/hook-cert"),
        "/api/v1/namespaces/windlass-system/secrets/system.hook".to_owned(),
    ] {
        let uid = sandbox.get(&secret).await.unwrap()["metadata"]["uid"].clone();
        sandbox.delete(&secret).await;
        sandbox
            .eventually("the Secret is there again", async || {
                sandbox
                    .get(&secret)
                    .await
                    .is_some_and(|secret| secret["metadata"]["uid"] != uid)
            })
            .await;
        sandbox.idle().await;
        sandbox.stable("hook", |_| true).await;
    }
    dialling.finish().await;

    let garbage =
        json!([{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": "Z2FyYmFnZQ=="}]);
    sandbox.patch(&format!("{HOOKS}/hooks"), &garbage).await;
    sandbox
        .eventually("the target carries the trust bundle again", async || {
            let target = sandbox.get(&format!("{HOOKS}/hooks")).await.unwrap();
            target.pointer("/webhooks/0/clientConfig/caBundle").cloned()
                == sandbox.secret("/data/ca.crt").await
        })
        .await;
    sandbox.idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_of_somebody_else_stays_as_it_is() {
    let sandbox = OperatedSandbox::start().await;
    let foreign = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "system", "name": "hook-cert"},
        "data": {"password": "c2VjcmV0"},
    });
    sandbox.create(SECRETS, &foreign).await;
    sandbox
        .create(
            &certificates("system"),
            &operated_sandbox::certificate("hook", "hook-cert"),
        )
        .await;
    let path = format!("{}/hook", certificates("system"));
    sandbox
        .eventually("it is said", async || {
            let object = sandbox.get(&path).await.unwrap();
            operated_sandbox::reason(&object, "Ready") == Some("ForeignSecret")
        })
        .await;
    let secret = sandbox.get(&format!("{SECRETS}/hook-cert")).await.unwrap();
    assert_eq!(secret["data"], foreign["data"]);

    // Once it is gone, nothing is in the way.
    sandbox.delete(&format!("{SECRETS}/hook-cert")).await;
    sandbox
        .patch(
            &path,
            &json!([{"op": "add", "path": "/metadata/annotations", "value": {"note": "look again"}}]),
        )
        .await;
    sandbox
        .eventually("it is issued", async || {
            sandbox.secret("/data/tls.crt").await.is_some()
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_is_managed_elsewhere_is_named_and_keeps_no_other_waiting() {
    let sandbox = OperatedSandbox::start().await;
    let mut elsewhere = operated_sandbox::configuration("elsewhere");
    elsewhere["metadata"]["annotations"]["cert-manager.io/inject-ca-from"] = "system/other".into();
    sandbox.create(HOOKS, &elsewhere).await;
    sandbox
        .create(HOOKS, &operated_sandbox::configuration("hooks"))
        .await;
    sandbox
        .create(
            &certificates("system"),
            &operated_sandbox::certificate("hook", "hook-cert"),
        )
        .await;
    sandbox
        .eventually("the other target is current, and this one named", async || {
            let object = sandbox
                .get(&format!("{}/hook", certificates("system")))
                .await
                .unwrap();
            let targets = &object["status"]["targets"];
            targets["current"] == 1 && targets["failing"][0]["name"] == "elsewhere"
        })
        .await;
    sandbox.idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_annotated_service_gets_a_certificate_and_loses_it() {
    let sandbox = OperatedSandbox::start().await;
    let mut service = operated_sandbox::service();
    service["metadata"]["annotations"] = json!({"windlass.dev/serving-cert-secret": "hook-cert"});
    sandbox.create(SERVICES, &service).await;
    sandbox
        .eventually("it is issued", async || {
            sandbox.secret("/data/tls.crt").await.is_some()
        })
        .await;
    let authority = "/api/v1/namespaces/windlass-system/secrets/system.hook";
    assert!(sandbox.get(authority).await.is_some());
    let patch = json!([{"op": "remove", "path": "/metadata/annotations"}]);
    sandbox.patch(&format!("{SERVICES}/hook"), &patch).await;
    sandbox
        .eventually("both Secrets are gone", async || {
            sandbox.secret("/data").await.is_none() && sandbox.get(authority).await.is_none()
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_may_ask_for_any_secret_that_lets_it() {
    let sandbox = OperatedSandbox::start().await;
    sandbox
        .create(
            &certificates("system"),
            &operated_sandbox::certificate("hook", "hook-cert"),
        )
        .await;
    sandbox
        .eventually("it is issued", async || {
            sandbox.secret("/data/ca.crt").await.is_some()
        })
        .await;
    let trust = sandbox.secret("/data/ca.crt").await.unwrap();
    let mut target = operated_sandbox::configuration("direct");
    target["metadata"]["annotations"] = json!({"windlass.dev/inject-ca-from-secret": "system/copied"});
    target["webhooks"][0]["clientConfig"] = json!({"url": "https://elsewhere.example.com"});
    sandbox.create(HOOKS, &target).await;
    let copied = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"namespace": "system", "name": "copied", "annotations": {"windlass.dev/allow-direct-injection": "true"}},
        "data": {"ca.crt": trust},
    });
    sandbox.create(SECRETS, &copied).await;
    sandbox
        .eventually("the target carries it", async || {
            let target = sandbox.get(&format!("{HOOKS}/direct")).await.unwrap();
            target.pointer("/webhooks/0/clientConfig/caBundle") == Some(&trust)
        })
        .await;
    tokio::time::timeout(Duration::from_secs(20), sandbox.idle())
        .await
        .unwrap();
}
