//! What the operator needs beside many large objects that are none of its business.

use std::{
    fmt,
    time::{Duration, Instant},
};

use clap::Args;
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use rand::{Rng, distr::Alphanumeric};
use serde_json::{Value, json};
use windlass_scenarios::{
    progress::StepPrinter,
    request::text,
    steps::{CRDS, VALIDATING, check, get, serving_certificates, succeed, until},
    test_cluster::TestCluster,
};

use super::{
    figures::{mebibytes, short},
    measurement::Measurement,
    objects::{certificate, target},
};

/// How memory and start are measured beside a crowd.
#[derive(Clone, Debug, Args)]
pub struct CrowdArguments {
    /// Number of CustomResourceDefinitions of 200 kB; ten times as many Secrets of 10 kB are beside them.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=5000))]
    pub definitions: u32,
}

/// Where the crowd is.
const NAMESPACE: &str = "crowd";

/// What is to be served there.
const CERTIFICATE: &str = "hook";

/// Bytes of each CustomResourceDefinition.
const DEFINITION: usize = 200_000;

/// Secrets for each CustomResourceDefinition.
const SECRETS: u32 = 10;

/// Bytes of each Secret.
const SECRET: usize = 10_000;

/// Targets that ask for a trust bundle.
const TARGETS: u32 = 10;

/// Objects that are created at a time.
const AT_ONCE: usize = 8;

/// How long the API server has to digest the crowd before the operator starts.
const REST: Duration = Duration::from_secs(15);

/// How long the operator is watched after every target has its trust bundle.
const WATCHED: Duration = Duration::from_secs(60);

/// How long the first injection may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Measures how soon the operator injects after its start, and its memory.
pub(super) async fn measure(
    arguments: &CrowdArguments,
    cluster: &TestCluster,
    progress: &StepPrinter,
) -> anyhow::Result<Measurement> {
    let client = &cluster.client;
    let definitions = arguments.definitions;
    let secrets = definitions * SECRETS;
    let title = format!("Creating {definitions} CustomResourceDefinitions and {secrets} Secrets");
    progress.step(&title, fill(client, definitions)).await?;
    tokio::time::sleep(REST).await;
    let half = cluster.certificates_half().await?;
    let started = Instant::now();
    let operator = half.start()?;
    let injected = progress
        .step("Waiting for the first trust bundle", injected(client, 0))
        .await
        .map(|()| started.elapsed())?;
    let first = operator.memory()?;
    for number in 1..TARGETS {
        self::injected(client, number).await?;
    }
    let watch = async {
        tokio::time::sleep(WATCHED).await;
        operator.memory()
    };
    let last = progress.step("Watching its memory", watch).await?;
    let peak = operator.peak_memory()?;
    Ok(Measurement {
        tables: format!(
            "Memory of the operator: {} at the first trust bundle, {} at the end, {} at most.\n",
            mebibytes(first),
            mebibytes(last),
            mebibytes(peak)
        ),
        failures: Vec::new(),
        missed: Vec::new(),
        summary: format!(
            "{definitions} CustomResourceDefinitions of {} kB and {secrets} Secrets of {} kB: first trust bundle after {}, {} of memory at most",
            DEFINITION / 1000,
            SECRET / 1000,
            short(injected),
            mebibytes(peak)
        ),
    })
}

impl fmt::Display for CrowdArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} CustomResourceDefinitions of {} kB, and {} Secrets of {} kB",
            self.definitions,
            DEFINITION / 1000,
            self.definitions * SECRETS,
            SECRET / 1000
        )
    }
}

async fn fill(client: &Client, definitions: u32) -> anyhow::Result<()> {
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    succeed(client, "POST", "/api/v1/namespaces", Some(&namespace)).await?;
    let certificate = certificate(CERTIFICATE);
    succeed(
        client,
        "POST",
        &serving_certificates(NAMESPACE),
        Some(&certificate),
    )
    .await?;
    let secrets = format!("/api/v1/namespaces/{NAMESPACE}/secrets");
    let objects = (0..TARGETS)
        .map(|number| (VALIDATING, target(NAMESPACE, &name(number), CERTIFICATE)))
        .chain((0..definitions).map(|number| (CRDS, definition(number))))
        .chain((0..definitions * SECRETS).map(|number| (secrets.as_str(), secret(number))));
    let creating = objects
        .map(|(path, object)| async move { succeed(client, "POST", path, Some(&object)).await.map(drop) });
    // Boxed: a stream of borrowing futures is not known to be `Send`.
    let creating = stream::iter(creating).buffer_unordered(AT_ONCE).boxed_local();
    creating.try_collect().await
}

/// The name of a target.
fn name(number: u32) -> String {
    format!("crowd-{number}")
}

async fn injected(client: &Client, number: u32) -> anyhow::Result<()> {
    let path = format!("{VALIDATING}/{}", name(number));
    until("the target has its trust bundle", PATIENCE, async || {
        let target = get(client, &path).await?.unwrap_or_default();
        let bundle = text(&target, "/webhooks/0/clientConfig/caBundle");
        Ok(check(!bundle.is_empty(), || target["metadata"].to_string()))
    })
    .await
}

/// A CustomResourceDefinition of many described fields.
fn definition(number: u32) -> Value {
    let fields: serde_json::Map<String, Value> = (0..DEFINITION / 1000)
        .map(|field| {
            let description = "word ".repeat(190);
            (
                format!("field{field}"),
                json!({"type": "string", "description": description}),
            )
        })
        .collect();
    let spec = json!({"type": "object", "properties": fields});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things{number}.crowd.example.com")},
        "spec": {
            "group": "crowd.example.com", "scope": "Cluster",
            "names": {"plural": format!("things{number}"), "kind": format!("Thing{number}")},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    })
}

/// A Secret that nobody asks for.
fn secret(number: u32) -> Value {
    let random = rand::rng().sample_iter(Alphanumeric).take(SECRET).map(char::from);
    json!({"metadata": {"name": format!("secret-{number}")}, "stringData": {"token": random.collect::<String>()}})
}
