//! Windlass's objects as kubectl displays them, with the same requests.

use anyhow::Context;
use serde_json::{Value, json};

use crate::{
    request::{self, text},
    sample::{self, NAMESPACE},
    steps::{
        self, BUNDLE_DEPLOYMENTS, PATIENCE, check, conditions, get, list, ready, serving_certificates,
        succeed, until,
    },
    test_cluster::TestCluster,
};

/// The `Accept` header of `kubectl get`.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// A column: its name, whether only `-o wide` shows it, and its content.
type Column = (&'static str, bool, CellContent);

/// The content of a cell.
#[derive(Clone, Copy)]
enum CellContent {
    /// The value at a JSON pointer.
    Field(&'static str),
    /// A field of the condition with this type.
    Condition(&'static str, &'static str),
    /// The age of the object.
    Age,
}

const BUNDLE_DEPLOYMENT: &[Column] = &[
    ("Name", false, CellContent::Field("/metadata/name")),
    (
        "Installed",
        false,
        CellContent::Field("/status/installed/version"),
    ),
    ("Next", false, CellContent::Field("/status/next/version")),
    ("Ready", false, CellContent::Condition("Ready", "status")),
    ("Reason", false, CellContent::Condition("Ready", "reason")),
    ("Age", false, CellContent::Age),
    ("Namespace", true, CellContent::Field("/spec/namespace")),
    ("Revision", true, CellContent::Field("/status/installed/revision")),
    ("Bundle", true, CellContent::Field("/status/installed/name")),
    ("Healthy", true, CellContent::Field("/status/installed/healthy")),
    ("Armed", true, CellContent::Condition("Armed", "status")),
    ("Message", true, CellContent::Condition("Ready", "message")),
];

const SERVING_CERTIFICATE: &[Column] = &[
    ("Name", false, CellContent::Field("/metadata/name")),
    ("Service", false, CellContent::Field("/spec/serviceName")),
    ("Secret", false, CellContent::Field("/spec/secretName")),
    ("Phase", false, CellContent::Field("/status/phase")),
    ("Ready", false, CellContent::Condition("Ready", "status")),
    ("Reason", false, CellContent::Condition("Ready", "reason")),
    ("Not After", false, CellContent::Field("/status/notAfter")),
    ("Age", false, CellContent::Age),
    ("Renewal", true, CellContent::Field("/status/renewalTime")),
    ("CA", true, CellContent::Field("/status/ca/current/generation")),
    ("CA Renewal", true, CellContent::Field("/status/ca/renewalTime")),
    ("Endpoints", true, CellContent::Field("/status/endpoints/ready")),
    ("Targets", true, CellContent::Field("/status/targets/total")),
    ("Message", true, CellContent::Condition("Ready", "message")),
];

impl CellContent {
    fn matches(self, object: &Value, cell: &Value) -> bool {
        match self {
            Self::Field(pointer) => object.pointer(pointer).unwrap_or(&Value::Null) == cell,
            Self::Condition(condition_type, field) => {
                let conditions = object["status"]["conditions"].as_array();
                conditions.into_iter().flatten().any(|condition| {
                    condition["type"] == condition_type && !cell.is_null() && condition[field] == *cell
                })
            }
            // A few seconds or minutes.
            Self::Age => cell
                .as_str()
                .is_some_and(|age| age.ends_with('s') || age.ends_with('m')),
        }
    }
}

pub(super) async fn kubectl_get_shows_the_status(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    sample::settled(cluster).await?;
    check_short_names(cluster).await?;
    let certificates = serving_certificates(NAMESPACE);
    for (collection, columns) in [
        (BUNDLE_DEPLOYMENTS, BUNDLE_DEPLOYMENT),
        (&certificates, SERVING_CERTIFICATE),
        (
            "/apis/windlass.dev/v1alpha1/servingcertificates",
            SERVING_CERTIFICATE,
        ),
    ] {
        // The status may change between the two responses, so both are requested again.
        until(
            &format!("the table of {collection} equals its objects"),
            PATIENCE,
            async || {
                let table = request::read_as(&cluster.client, collection, TABLE).await?;
                let table = table.first().context("no table")?;
                Ok(
                    difference(table, &list(&cluster.client, collection).await?, columns)?
                        .map_or(Ok(()), Err),
                )
            },
        )
        .await?;
    }
    cluster.bundle("sample.v2")?;
    let patch = json!({"spec": {"source": {"directory": {"path": "sample.v2"}}}});
    let path = sample::BUNDLE_DEPLOYMENT;
    let before = get(&cluster.client, path).await?.context("no BundleDeployment")?;
    succeed(&cluster.client, "PATCH", path, Some(&patch)).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    // The output of `kubectl get --watch` up to now.
    let watch = format!(
        "{BUNDLE_DEPLOYMENTS}?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dsample&resourceVersion={}",
        text(&before, "/metadata/resourceVersion")
    );
    let shown = request::read_as(&cluster.client, &watch, TABLE).await?;
    let column = |name: &str| BUNDLE_DEPLOYMENT.iter().position(|(known, ..)| *known == name);
    let (version, is_ready) = column("Installed")
        .zip(column("Ready"))
        .context("no such columns")?;
    let seen: Vec<_> = shown
        .iter()
        .map(|event| {
            let cells = &event["object"]["rows"][0]["cells"];
            (&cells[version], &cells[is_ready])
        })
        .collect();
    let mut to_come = [("1.0.0", "True"), ("1.0.0", "False"), ("2.0.0", "True")]
        .iter()
        .peekable();
    for (version, is_ready) in &seen {
        to_come.next_if(|(next, is_next_ready)| *version == next && *is_ready == is_next_ready);
    }
    anyhow::ensure!(
        to_come.peek().is_none(),
        "the watch did not show the upgrade: {seen:?}"
    );
    Ok(())
}

/// Returns a difference between the table and the objects.
fn difference(table: &Value, objects: &[Value], columns: &[Column]) -> anyhow::Result<Option<String>> {
    let definitions = table["columnDefinitions"]
        .as_array()
        .context("the table has no columns")?;
    let defined: Vec<_> = definitions
        .iter()
        .map(|column| (text(column, "/name"), column["priority"] != 0))
        .collect();
    let expected: Vec<_> = columns.iter().map(|(name, wide, _)| (*name, *wide)).collect();
    anyhow::ensure!(
        defined == expected,
        "the columns are {defined:?}, not {expected:?}"
    );
    let rows = table["rows"].as_array().context("the table has no rows")?;
    anyhow::ensure!(!objects.is_empty(), "there are no objects");
    anyhow::ensure!(
        rows.len() == objects.len(),
        "{} rows, {} objects",
        rows.len(),
        objects.len()
    );
    for (row, object) in rows.iter().zip(objects) {
        for (position, (name, _, shown)) in columns.iter().enumerate() {
            let cell = &row["cells"][position];
            if !shown.matches(object, cell) {
                return Ok(Some(format!("{name} shows {cell} of {object}")));
            }
        }
    }
    Ok(None)
}

/// Checks that `kubectl get bd`, `kubectl get scert` and `kubectl get windlass` work.
async fn check_short_names(cluster: &TestCluster) -> anyhow::Result<()> {
    let served = get(&cluster.client, "/apis/windlass.dev/v1alpha1")
        .await?
        .context("not served")?;
    for (plural, short) in [("bundledeployments", "bd"), ("servingcertificates", "scert")] {
        let resources = served["resources"].as_array();
        let resource = resources
            .into_iter()
            .flatten()
            .find(|resource| resource["name"] == plural);
        let resource = resource.with_context(|| format!("{plural} are not served"))?;
        anyhow::ensure!(
            resource["shortNames"] == json!([short]) && resource["categories"] == json!(["windlass"]),
            "{resource}"
        );
    }
    Ok(())
}

pub(super) async fn kubectl_describe_shows_the_events(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let deployed = sample::install(cluster, "sample.v1").await?;
    wait_for_event(
        cluster,
        &deployed,
        "Normal",
        "Ready",
        "installed, available and armed",
    )
    .await?;
    let path = sample::SERVING_CERTIFICATE;
    for what in ["leaf", "ca"] {
        sample::rotate(cluster, what).await?;
        let certificate = get(&cluster.client, path)
            .await?
            .context("no ServingCertificate")?;
        // The events are distinct, although their reasons are equal.
        wait_for_event(
            cluster,
            &certificate,
            "Normal",
            "RotationStarted",
            &format!("\"{what}:asked for at "),
        )
        .await?;
        let until = text(&certificate, "/status/notAfter");
        wait_for_event(cluster, &certificate, "Normal", "CertificateIssued", until).await?;
    }
    let broken = steps::bundle_deployment("broken", "broken-system", "nowhere");
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&broken)).await?;
    let broken = get(&cluster.client, &format!("{BUNDLE_DEPLOYMENTS}/broken"))
        .await?
        .context("no BundleDeployment")?;
    wait_for_event(
        cluster,
        &broken,
        "Warning",
        "SourceInvalid",
        "nowhere: cannot be read",
    )
    .await?;
    // Repetitions of an event increase its count.
    let elsewhere =
        json!({"spec": {"source": {"directory": {"path": "sample.v1"}}, "watchNamespaces": ["one"]}});
    wait_until_rejected(cluster, &elsewhere, "InstallUnsupported").await?;
    let nowhere = json!({"spec": {"source": {"directory": {"path": "nowhere"}}}});
    wait_until_rejected(cluster, &nowhere, "SourceInvalid").await?;
    until("the count of the event is 2", PATIENCE, async || {
        let events = events_of(cluster, &broken).await?;
        let mut refusals = events.iter().filter(|event| event["reason"] == "SourceInvalid");
        let counted = refusals.next().is_some_and(|event| event["series"]["count"] == 2);
        Ok(check(counted && refusals.next().is_none(), || {
            json!(events).to_string()
        }))
    })
    .await
}

/// Changes the invalid BundleDeployment so that it is rejected for `reason`, and waits for that.
async fn wait_until_rejected(cluster: &TestCluster, change: &Value, reason: &str) -> anyhow::Result<()> {
    let path = format!("{BUNDLE_DEPLOYMENTS}/broken");
    succeed(&cluster.client, "PATCH", &path, Some(change)).await?;
    until(&format!("it is rejected for {reason}"), PATIENCE, async || {
        let object = get(&cluster.client, &path)
            .await?
            .context("no BundleDeployment")?;
        let words = conditions(&object);
        Ok(check(words.contains(&format!("Ready=False {reason}")), || words))
    })
    .await
}

/// Waits until `kubectl describe` shows an event of the object whose message contains `words`.
async fn wait_for_event(
    cluster: &TestCluster,
    about: &Value,
    event_type: &str,
    reason: &str,
    words: &str,
) -> anyhow::Result<()> {
    let what = format!(
        "describe {} shows {reason} with {words:?}",
        text(about, "/metadata/name")
    );
    until(&what, PATIENCE, async || {
        let events = events_of(cluster, about).await?;
        let found = events.iter().any(|event| {
            event["type"] == event_type
                && event["reason"] == reason
                && text(event, "/message").contains(words)
                && event["reportingComponent"] == "windlass.dev/operator"
                && event["eventTime"].is_string()
        });
        Ok(check(found, || json!(events).to_string()))
    })
    .await
}

/// Returns the events that `kubectl describe` lists for an object: those of the core group with its name,
/// namespace, kind and uid, in all namespaces if it is cluster-scoped.
async fn events_of(cluster: &TestCluster, about: &Value) -> anyhow::Result<Vec<Value>> {
    let [name, namespace, uid] =
        ["name", "namespace", "uid"].map(|field| text(&about["metadata"], &format!("/{field}")));
    let root = match namespace {
        "" => "/api/v1".to_owned(),
        namespace => format!("/api/v1/namespaces/{namespace}"),
    };
    let selector = format!(
        "involvedObject.name={name},involvedObject.namespace={namespace},involvedObject.kind={},involvedObject.uid={uid}",
        text(about, "/kind")
    );
    let selector = selector.replace('=', "%3D").replace(',', "%2C");
    list(
        &cluster.client,
        &format!("{root}/events?fieldSelector={selector}&limit=500"),
    )
    .await
}
