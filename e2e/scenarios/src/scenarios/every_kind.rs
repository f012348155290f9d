//! What may become of a target, for each kind that carries CA bundles.

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

/// Where the Secrets are that the target asks for.
const NAMESPACE: &str = "asked-by-all";

/// Who applies the target.
const OWNER: &str = "an-owner";

/// A target, and what of it is looked at.
struct Watched<'a> {
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

/// Asks for the CA of these Secrets.
fn ask(secrets: &[&str]) -> Value {
    let secrets: Vec<_> = secrets.iter().map(|name| format!("{NAMESPACE}/{name}")).collect();
    json!({names::INJECT_CA_FROM_SECRET: secrets.join(",")})
}

/// A target of this kind asks for what is not there, is garbage, comes, and changes, one source and two; its owner writes everything
/// around what was injected in each way that there is, drops an entry, and asks no more.
pub(super) async fn goes_through_everything(cluster: &TestCluster, kind: &str) -> anyhow::Result<()> {
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
    let target = ForeignTarget::of(kind, &ask(&["first"]), (NAMESPACE, "hook"), &entries);
    let mut watched = Watched {
        client,
        entries: if kind.places[0].list.is_some() { 2 } else { 1 },
        target,
    };
    watched.write("apply").await?;
    watched.told("waiting for Secret").await?;
    succeed(client, "POST", &secrets(), Some(&secret("first", "Z2FyYmFnZQ=="))).await?;
    watched.told("first: ca.crt").await?;
    watched.carries(&[]).await?;

    let [first, second, third] = [
        foreign::trust_bundle()?,
        foreign::trust_bundle()?,
        foreign::trust_bundle()?,
    ];
    let path = format!("{}/first", secrets());
    succeed(client, "PUT", &path, Some(&secret("first", &first))).await?;
    watched.carries(&[&first]).await?;
    succeed(client, "PUT", &path, Some(&secret("first", "Z2FyYmFnZQ=="))).await?;
    watched.told("first: ca.crt").await?;
    watched.carries(&[&first]).await?;

    succeed(client, "POST", &secrets(), Some(&secret("second", &second))).await?;
    watched.annotate(&ask(&["first", "second"])).await?;
    watched.carries(&[&first, &second]).await?;
    // Nobody sees who serves: what it gave before stays trusted.
    succeed(client, "PUT", &path, Some(&secret("first", &third))).await?;
    watched.carries(&[&first, &second, &third]).await?;
    let all = [&*first, &*second, &*third];

    watched.target.object["metadata"]["annotations"] = ask(&["first", "second"]);
    // An owner that applies may drop an entry only while nobody else owns it.
    watched.is_kept_by("apply", &all).await?;
    if let Some(list) = &kind.places[0].list {
        let webhooks = watched
            .target
            .object
            .pointer_mut(list)
            .and_then(Value::as_array_mut);
        webhooks.context("no list")?.pop();
        watched.write("apply").await?;
        watched.entries = 1;
        watched.carries(&all).await?;
        let seen = watched.seen().await?;
        let left = seen.pointer(list).and_then(Value::as_array).map(Vec::len);
        anyhow::ensure!(left == Some(1), "the owner may not drop an entry: {seen}");
    }
    watched.is_kept_by("merge", &all).await?;
    watched.is_kept_by("put", &all).await?;
    watched
        .annotate(&json!({names::INJECT_CA_FROM_SECRET: null}))
        .await?;
    watched.carries(&[]).await
}

// === impl Watched ===

impl Watched<'_> {
    async fn seen(&self) -> anyhow::Result<Value> {
        get(self.client, &self.target.path()).await?.context("gone")
    }

    /// Waits until each place has exactly the certificates of these.
    async fn carries(&self, bundles: &[&str]) -> anyhow::Result<()> {
        let decoded = bundles.iter().map(|bundle| STANDARD.decode(bundle));
        let pem: Vec<_> = decoded.collect::<Result<_, _>>()?;
        let expected: BTreeSet<_> = pem.iter().flat_map(|pem| foreign::certificates(pem)).collect();
        let encoding = self.target.kind.places[0].encoding;
        until(
            &format!("it carries {} CAs", expected.len()),
            PATIENCE,
            async || {
                let seen = self.seen().await?;
                let is_there = (0..self.entries).all(|entry| {
                    let value = seen.pointer(&self.target.bundle(entry)).and_then(Value::as_str);
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

    /// Waits until an event says something of it.
    async fn told(&self, part: &str) -> anyhow::Result<()> {
        until(&format!("it is told: {part}"), PATIENCE, async || {
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

    /// The owner writes the target in some way, and what was injected is there again.
    async fn is_kept_by(&mut self, way: &str, bundles: &[&str]) -> anyhow::Result<()> {
        self.target.object["metadata"]["labels"] = json!({"written-by": way});
        self.write(way).await?;
        self.carries(bundles).await?;
        let seen = self.seen().await?;
        anyhow::ensure!(seen["metadata"]["labels"]["written-by"] == way, "{seen}");
        Ok(())
    }

    /// The owner writes the target without what was injected.
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
                until("nobody is faster", PATIENCE, async || {
                    let mut object = object.clone();
                    object["metadata"]["resourceVersion"] =
                        self.seen().await?["metadata"]["resourceVersion"].clone();
                    let answer = request::send(self.client, "PUT", &path, Some(&object)).await?;
                    Ok(check(answer.code == 200, || answer.to_string()))
                })
                .await?;
            }
        }
        Ok(())
    }
}
