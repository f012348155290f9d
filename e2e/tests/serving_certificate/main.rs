//! Serving certificates on a sandbox: issued, injected, rotated and repaired while a client keeps dialing the
//! server.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic fails the test"
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
    let stable = sandbox.wait_until_stable("hook", |_| true).await;
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
        .eventually("the leaf is replaced", async || {
            sandbox.secret("/data/tls.crt").await != chain
        })
        .await;
    sandbox.wait_until_stable("hook", |_| true).await;
    let after = sandbox.get(&crd).await.unwrap();
    assert_eq!(
        after["metadata"]["generation"], before["metadata"]["generation"],
        "a new leaf does not change targets"
    );

    for generation in [2, 3] {
        sandbox.rotate("hook", &format!("ca:test-{generation}")).await;
        let rotated = |status: &Value| status.pointer("/ca/current/generation") == Some(&json!(generation));
        sandbox.wait_until_stable("hook", rotated).await;
    }
    let after = sandbox.get(&crd).await.unwrap();
    let writes = |object: &Value| object["metadata"]["generation"].as_i64().unwrap();
    assert_eq!(writes(&after) - writes(&before), 2, "one write for each rotation");
    dialling.finish().await;
    sandbox.wait_until_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_and_deleted_objects_are_repaired() {
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
    sandbox.wait_until_stable("hook", |_| true).await;
    let dialling = sandbox.dial_through([(format!("{HOOKS}/hooks"), "/webhooks/0/clientConfig/caBundle")]);

    // The served certificate stays trusted through both repairs.
    for secret in [
        format!("{SECRETS}/hook-cert"),
        "/api/v1/namespaces/windlass-system/secrets/system.hook".to_owned(),
    ] {
        let uid = sandbox.get(&secret).await.unwrap()["metadata"]["uid"].clone();
        sandbox.delete(&secret).await;
        sandbox
            .eventually("the Secret exists again", async || {
                sandbox
                    .get(&secret)
                    .await
                    .is_some_and(|secret| secret["metadata"]["uid"] != uid)
            })
            .await;
        sandbox.wait_until_idle().await;
        sandbox.wait_until_stable("hook", |_| true).await;
    }
    dialling.finish().await;

    let garbage =
        json!([{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": "Z2FyYmFnZQ=="}]);
    sandbox.patch(&format!("{HOOKS}/hooks"), &garbage).await;
    sandbox
        .eventually("the target has the trust bundle again", async || {
            let target = sandbox.get(&format!("{HOOKS}/hooks")).await.unwrap();
            target.pointer("/webhooks/0/clientConfig/caBundle").cloned()
                == sandbox.secret("/data/ca.crt").await
        })
        .await;
    sandbox.wait_until_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_secret_of_another_owner_is_not_changed() {
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
        .eventually("the condition reports it", async || {
            let object = sandbox.get(&path).await.unwrap();
            operated_sandbox::reason(&object, "Ready") == Some("ForeignSecret")
        })
        .await;
    let secret = sandbox.get(&format!("{SECRETS}/hook-cert")).await.unwrap();
    assert_eq!(secret["data"], foreign["data"]);

    // Once the Secret is deleted, the certificate is issued.
    sandbox.delete(&format!("{SECRETS}/hook-cert")).await;
    sandbox
        .patch(
            &path,
            &json!([{"op": "add", "path": "/metadata/annotations", "value": {"note": "look again"}}]),
        )
        .await;
    sandbox
        .eventually("the certificate is issued", async || {
            sandbox.secret("/data/tls.crt").await.is_some()
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_with_another_manager_is_reported_and_does_not_block_others() {
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
        .eventually(
            "the other target is current, and this one is reported",
            async || {
                let object = sandbox
                    .get(&format!("{}/hook", certificates("system")))
                    .await
                    .unwrap();
                let targets = &object["status"]["targets"];
                targets["current"] == 1 && targets["failing"][0]["name"] == "elsewhere"
            },
        )
        .await;
    sandbox.wait_until_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_annotated_service_gets_a_certificate_and_loses_it() {
    let sandbox = OperatedSandbox::start().await;
    let mut service = operated_sandbox::service();
    service["metadata"]["annotations"] = json!({"windlass.dev/serving-cert-secret": "hook-cert"});
    sandbox.create(SERVICES, &service).await;
    sandbox
        .eventually("the certificate is issued", async || {
            sandbox.secret("/data/tls.crt").await.is_some()
        })
        .await;
    let authority = "/api/v1/namespaces/windlass-system/secrets/system.hook";
    assert!(sandbox.get(authority).await.is_some());
    let patch = json!([{"op": "remove", "path": "/metadata/annotations"}]);
    sandbox.patch(&format!("{SERVICES}/hook"), &patch).await;
    sandbox
        .eventually("both Secrets are deleted", async || {
            sandbox.secret("/data").await.is_none() && sandbox.get(authority).await.is_none()
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_can_request_any_secret_that_allows_it() {
    let sandbox = OperatedSandbox::start().await;
    sandbox
        .create(
            &certificates("system"),
            &operated_sandbox::certificate("hook", "hook-cert"),
        )
        .await;
    sandbox
        .eventually("the certificate is issued", async || {
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
        .eventually("the target has the trust bundle", async || {
            let target = sandbox.get(&format!("{HOOKS}/direct")).await.unwrap();
            target.pointer("/webhooks/0/clientConfig/caBundle") == Some(&trust)
        })
        .await;
    tokio::time::timeout(Duration::from_secs(20), sandbox.wait_until_idle())
        .await
        .unwrap();
}
