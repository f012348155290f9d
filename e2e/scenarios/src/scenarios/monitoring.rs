//! Every metric in alerts and in the dashboard is exported.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use serde_json::{Value, json};
use windlass::commands::manifests;

use crate::{
    documentation,
    operator::Running,
    sample,
    steps::{PATIENCE, check, list, succeed, until},
    test_cluster::TestCluster,
};

/// Names of metrics, each with the names of its labels.
type Labels = BTreeMap<String, BTreeSet<String>>;

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// Prefixes of Windlass's metrics; all others come from Prometheus.
const PREFIXES: [&str; 3] = ["windlass_", "rest_client_", "kcloudlabs_"];

/// Metrics of situations that do not occur here and have their own tests: a server that does not reload, a
/// kind that cannot be listed, policies.
const TESTED_ELSEWHERE: [&str; 3] = [
    "windlass_serving_certificate_not_reloaded",
    "windlass_unlisted_kinds",
    "windlass_policy_review_duration_seconds",
];

pub(super) async fn every_metric_in_alerts_and_the_dashboard_is_exported(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let paused = json!({"metadata": {"annotations": {"windlass.dev/paused": "for a test"}}});
    succeed(&cluster.client, "PATCH", sample::BUNDLE_DEPLOYMENT, Some(&paused)).await?;
    remove_ca_bundle(cluster).await?;
    let queried = queried_metrics();
    let documented = documented_labels()?;
    until("every queried metric is exported", PATIENCE, async || {
        let exported = exported_labels(&operator).await?;
        let missing: Vec<_> = queried
            .iter()
            .filter(|name| !exported.contains_key(*name))
            .collect();
        Ok(check(missing.is_empty(), || format!("not exported: {missing:?}")))
    })
    .await?;
    // `tests/monitoring` checks that the examples of alerts use the documented labels.
    let exported = exported_labels(&operator).await?;
    let wrong: Vec<_> = documented
        .iter()
        .filter_map(|(name, labels)| Some((name, labels, exported.get(name)?)))
        .filter(|(_, labels, exported)| labels != exported)
        .collect();
    anyhow::ensure!(
        wrong.is_empty(),
        "the labels in docs/monitoring.md differ from the exported ones: {wrong:?}"
    );
    Ok(())
}

/// Reads the labels of the metrics from the documentation.
fn documented_labels() -> anyhow::Result<Labels> {
    let page = fs::read_to_string(documentation::root().join("docs/monitoring.md"))?;
    let mut labels = Labels::new();
    for row in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<_> = row.split('|').collect();
        let own: BTreeSet<_> = quoted(cells[2]).map(str::to_owned).collect();
        labels.extend(quoted(cells[1]).map(|name| (name.to_owned(), own.clone())));
    }
    anyhow::ensure!(labels.len() > 20, "only {labels:?}");
    Ok(labels)
}

/// Returns the parts between backticks that are not in parentheses.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    cell.split('`').enumerate().filter_map(move |(index, part)| {
        let is_quoted = index % 2 == 1;
        if !is_quoted {
            depth += part.matches('(').count();
            depth -= part.matches(')').count();
        }
        (is_quoted && depth == 0).then_some(part)
    })
}

/// Removes a `caBundle`, which has to be repaired.
async fn remove_ca_bundle(cluster: &TestCluster) -> anyhow::Result<()> {
    let configurations = list(&cluster.client, CONFIGURATIONS).await?;
    let called = configurations.iter().find(|configuration| {
        configuration
            .pointer("/webhooks/0/clientConfig/caBundle")
            .is_some()
    });
    let mut configuration = called
        .ok_or_else(|| anyhow::anyhow!("no webhook has a caBundle"))?
        .clone();
    configuration["webhooks"][0]["clientConfig"]["caBundle"] = Value::Null;
    let name = configuration["metadata"]["name"].as_str().unwrap_or_default();
    let path = format!("{CONFIGURATIONS}/{name}");
    succeed(&cluster.client, "PUT", &path, Some(&configuration)).await?;
    Ok(())
}

/// Returns the names of the metrics in alerts and the dashboard.
fn queried_metrics() -> BTreeSet<String> {
    let mut expressions = Vec::new();
    collect_expressions(&manifests::rule_groups(), &mut expressions);
    collect_expressions(&manifests::dashboard(), &mut expressions);
    let is_of_a_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    expressions
        .iter()
        .flat_map(|expression| expression.split(|character| !is_of_a_name(character)))
        .filter(|word| PREFIXES.iter().any(|prefix| word.starts_with(prefix)))
        .map(family)
        .filter(|name| !TESTED_ELSEWHERE.contains(&name.as_str()) && !name.starts_with("kcloudlabs_"))
        .collect()
}

fn collect_expressions(value: &Value, expressions: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(expression)) = fields.get("expr") {
                expressions.push(expression.clone());
            }
            for field in fields.values() {
                collect_expressions(field, expressions);
            }
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| collect_expressions(item, expressions)),
        _ => {}
    }
}

/// Reads the exported metrics with their labels.
async fn exported_labels(operator: &Running) -> anyhow::Result<Labels> {
    let text = operator.ask("/metrics").await?;
    let mut exported = Labels::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, rest) = line.split_at(line.find(['{', ' ']).unwrap_or(line.len()));
        let labels = rest.strip_prefix('{').and_then(|rest| rest.rsplit_once('}'));
        // A value may contain a comma, but no `="` follows it.
        let labels = labels.map_or("", |(labels, _)| labels).split(',');
        let names = labels.filter_map(|label| Some(label.split_once("=\"")?.0));
        let names = names.filter(|name| *name != "le").map(str::to_owned);
        exported.entry(family(name)).or_default().extend(names);
    }
    Ok(exported)
}

/// Returns the name of a metric without the suffix of a histogram's series.
fn family(name: &str) -> String {
    let base = ["_bucket", "_count", "_sum"]
        .iter()
        .find_map(|end| name.strip_suffix(end))
        .filter(|base| base.ends_with("_seconds"));
    base.unwrap_or(name).to_owned()
}
