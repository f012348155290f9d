//! Changes of a target and of its CA sources, for each kind that contains CA bundles.

use std::collections::BTreeSet;

use anyhow::Context;
use base64::{Engine, engine::general_purpose::STANDARD};
use kube::Client;
use serde_json::{Value, json};
use windlass_object::names;
use windlass_trust::injection::{Encoding, KINDS};

use super::{
    foreign,
    target::{ForeignTarget, define},
};
use crate::{
    request,
    steps::{PATIENCE, check, get, list, succeed, until},
    test_cluster::TestCluster,
};

/// The namespace of the target's Secrets.
const NAMESPACE: &str = "asked-by-all";

/// The field manager that applies the target.
const OWNER: &str = "an-owner";

/// A target, and the fields that are checked.
struct WatchedTarget<'a> {
    client: &'a Client,
    target: ForeignTarget,
    entries: usize,
}

fn secrets() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/secrets")
}

fn secret(name: &str, ca: &str) -> Value {
    json!({
        "metadata": {"name": name, "annotations": {names::ALLOW_DIRECT_INJECTION: "true"}},
        "data": {"ca.crt": ca},
    })
}

/// Annotations that request the CA of these Secrets.
fn ca_annotation(secrets: &[&str]) -> Value {
    let secrets: Vec<_> = secrets.iter().map(|name| format!("{NAMESPACE}/{name}")).collect();
    json!({names::INJECT_CA_FROM_SECRET: secrets.join(",")})
}

/// Tests a target of this kind with missing, invalid, new and changed sources, one and two of them. Then its
/// owner writes it by apply, merge patch and PUT, removes an entry, and removes the annotation.
pub(super) async fn keeps_its_trust_bundle(cluster: &TestCluster, kind: &str) -> anyhow::Result<()> {
    let client = &cluster.client;
    let _operator = cluster.operator.start()?;
    let kind = KINDS
        .iter()
        .find(|known| known.kind == kind)
        .context("no such kind")?;
    define(client, kind).await?;
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    succeed(client, "POST", "/api/v1/namespaces", Some(&namespace)).await?;
    let entries = ["one.example.com", "two.example.com"];
    let target = ForeignTarget::new(kind, &ca_annotation(&["first"]), (NAMESPACE, "hook"), &entries);
    let mut watched = WatchedTarget {
        client,
        entries: if kind.places[0].list.is_some() { 2 } else { 1 },
        target,
    };
    watched.write("apply").await?;
    watched.wait_for_event("waiting for Secret").await?;
    succeed(client, "POST", &secrets(), Some(&secret("first", "Z2FyYmFnZQ=="))).await?;
    watched.wait_for_event("first: ca.crt").await?;
    watched.wait_for_certificates(&[]).await?;

    let [first, second, third] = [
        foreign::trust_bundle()?,
        foreign::trust_bundle()?,
        foreign::trust_bundle()?,
    ];
    let path = format!("{}/first", secrets());
    succeed(client, "PUT", &path, Some(&secret("first", &first))).await?;
    watched.wait_for_certificates(&[&first]).await?;
    succeed(client, "PUT", &path, Some(&secret("first", "Z2FyYmFnZQ=="))).await?;
    watched.wait_for_event("first: ca.crt").await?;
    watched.wait_for_certificates(&[&first]).await?;

    succeed(client, "POST", &secrets(), Some(&secret("second", &second))).await?;
    watched.annotate(&ca_annotation(&["first", "second"])).await?;
    watched.wait_for_certificates(&[&first, &second]).await?;
    // No servers are known that could prove the new CA, so the previous one stays trusted.
    succeed(client, "PUT", &path, Some(&secret("first", &third))).await?;
    watched.wait_for_certificates(&[&first, &second, &third]).await?;
    let all = [&*first, &*second, &*third];

    watched.target.object["metadata"]["annotations"] = ca_annotation(&["first", "second"]);
    // An owner can remove an entry by apply only if no other field manager owns it.
    watched.check_kept_after("apply", &all).await?;
    if let Some(list) = &kind.places[0].list {
        let webhooks = watched
            .target
            .object
            .pointer_mut(list)
            .and_then(Value::as_array_mut);
        webhooks.context("no list")?.pop();
        watched.write("apply").await?;
        watched.entries = 1;
        watched.wait_for_certificates(&all).await?;
        let seen = watched.read().await?;
        let left = seen.pointer(list).and_then(Value::as_array).map(Vec::len);
        anyhow::ensure!(left == Some(1), "the owner cannot remove an entry: {seen}");
    }
    watched.check_kept_after("merge", &all).await?;
    watched.check_kept_after("put", &all).await?;
    watched
        .annotate(&json!({names::INJECT_CA_FROM_SECRET: null}))
        .await?;
    watched.wait_for_certificates(&[]).await
}

impl WatchedTarget<'_> {
    async fn read(&self) -> anyhow::Result<Value> {
        get(self.client, &self.target.path())
            .await?
            .context("it does not exist")
    }

    /// Waits until each entry has exactly the certificates of `bundles`.
    async fn wait_for_certificates(&self, bundles: &[&str]) -> anyhow::Result<()> {
        let decoded = bundles.iter().map(|bundle| STANDARD.decode(bundle));
        let pem: Vec<_> = decoded.collect::<Result<_, _>>()?;
        let expected: BTreeSet<_> = pem.iter().flat_map(|pem| foreign::certificates(pem)).collect();
        let encoding = self.target.kind.places[0].encoding;
        until(
            &format!("the target has {} CAs", expected.len()),
            PATIENCE,
            async || {
                let seen = self.read().await?;
                let is_there = (0..self.entries).all(|entry| {
                    let value = seen
                        .pointer(&self.target.bundle_pointer(entry))
                        .and_then(Value::as_str);
                    let value = value.unwrap_or_default();
                    let pem = match encoding {
                        Encoding::Base64 => STANDARD.decode(value).unwrap_or_default(),
                        Encoding::Pem => value.as_bytes().to_vec(),
                    };
                    foreign::certificates(&pem) == expected
                });
                Ok(check(is_there, || seen.to_string()))
            },
        )
        .await
    }

    /// Waits until an event about the target contains `part`.
    async fn wait_for_event(&self, part: &str) -> anyhow::Result<()> {
        until(&format!("an event contains: {part}"), PATIENCE, async || {
            let events = list(self.client, "/apis/events.k8s.io/v1/events").await?;
            let name = &self.target.object["metadata"]["name"];
            let notes: Vec<_> = events
                .iter()
                .filter(|event| event["regarding"]["name"] == *name && event["reason"] == "NoTrustBundle")
                .filter_map(|event| event["note"].as_str())
                .collect();
            Ok(check(notes.iter().any(|note| note.contains(part)), || {
                notes.join("\n")
            }))
        })
        .await
    }

    async fn annotate(&self, annotations: &Value) -> anyhow::Result<()> {
        let patch = json!({"metadata": {"annotations": annotations}});
        succeed(self.client, "PATCH", &self.target.path(), Some(&patch)).await?;
        Ok(())
    }

    /// Checks that the trust bundle is restored after the owner writes the target.
    async fn check_kept_after(&mut self, way: &str, bundles: &[&str]) -> anyhow::Result<()> {
        self.target.object["metadata"]["labels"] = json!({"written-by": way});
        self.write(way).await?;
        self.wait_for_certificates(bundles).await?;
        let seen = self.read().await?;
        anyhow::ensure!(seen["metadata"]["labels"]["written-by"] == way, "{seen}");
        Ok(())
    }

    /// Writes the target as its owner, without the trust bundle.
    async fn write(&self, way: &str) -> anyhow::Result<()> {
        let (path, object) = (self.target.path(), &self.target.object);
        match way {
            "apply" => {
                let answer = request::apply(self.client, &path, OWNER, true, object).await?;
                anyhow::ensure!(answer.code < 300, "{answer}");
            }
            "merge" => {
                succeed(self.client, "PATCH", &path, Some(object)).await?;
            }
            _ => {
                until("the PUT meets no conflict", PATIENCE, async || {
                    let mut object = object.clone();
                    object["metadata"]["resourceVersion"] =
                        self.read().await?["metadata"]["resourceVersion"].clone();
                    let answer = request::send(self.client, "PUT", &path, Some(&object)).await?;
                    Ok(check(answer.code == 200, || answer.to_string()))
                })
                .await?;
            }
        }
        Ok(())
    }
}
