//! What alerts and the dashboard ask for is there to be scraped.

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

/// The names of metrics, and the names of their labels.
type Labels = BTreeMap<String, BTreeSet<String>>;

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// Prefixes of the metrics that are Windlass'; the rest are Prometheus' own.
const PREFIXES: [&str; 3] = ["windlass_", "rest_client_", "kcloudlabs_"];

/// What nobody has caused here, and tests of their own see: a server that reads nothing, a kind that cannot be listed, policies.
const ELSEWHERE: [&str; 3] = [
    "windlass_serving_certificate_not_reloaded",
    "windlass_unlisted_kinds",
    "windlass_policy_review_duration_seconds",
];

pub(super) async fn what_is_alerted_on_is_measured(cluster: &TestCluster) -> anyhow::Result<()> {
    let operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let paused = json!({"metadata": {"annotations": {"windlass.dev/paused": "to be seen"}}});
    succeed(&cluster.client, "PATCH", sample::BUNDLE_DEPLOYMENT, Some(&paused)).await?;
    spoil_a_trust_bundle(cluster).await?;
    let asked = asked();
    let described = described()?;
    until("everything is measured", PATIENCE, async || {
        let measured = measured(&operator).await?;
        let missing: Vec<_> = asked
            .iter()
            .filter(|name| !measured.contains_key(*name))
            .collect();
        Ok(check(missing.is_empty(), || format!("not there: {missing:?}")))
    })
    .await?;
    // Examples of alerts have the labels that the page says: see `tests/monitoring`.
    let measured = measured(&operator).await?;
    let wrong: Vec<_> = described
        .iter()
        .filter_map(|(name, labels)| Some((name, labels, measured.get(name)?)))
        .filter(|(_, labels, measured)| labels != measured)
        .collect();
    anyhow::ensure!(
        wrong.is_empty(),
        "docs/monitoring.md says other labels than there are: {wrong:?}"
    );
    Ok(())
}

/// The labels of metrics, as the page says.
fn described() -> anyhow::Result<Labels> {
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

/// What stands between backticks, and in no brackets.
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

/// Puts something else in the place of a `caBundle`, to be repaired.
async fn spoil_a_trust_bundle(cluster: &TestCluster) -> anyhow::Result<()> {
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

/// The names of the metrics that are asked for.
fn asked() -> BTreeSet<String> {
    let mut expressions = Vec::new();
    collect_expressions(&manifests::rule_groups(), &mut expressions);
    collect_expressions(&manifests::dashboard(), &mut expressions);
    let is_of_a_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    expressions
        .iter()
        .flat_map(|expression| expression.split(|character| !is_of_a_name(character)))
        .filter(|word| PREFIXES.iter().any(|prefix| word.starts_with(prefix)))
        .map(family)
        .filter(|name| !ELSEWHERE.contains(&name.as_str()) && !name.starts_with("kcloudlabs_"))
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

/// The metrics that there are, with their labels.
async fn measured(operator: &Running) -> anyhow::Result<Labels> {
    let text = operator.ask("/metrics").await?;
    let mut measured = Labels::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, rest) = line.split_at(line.find(['{', ' ']).unwrap_or(line.len()));
        let labels = rest.strip_prefix('{').and_then(|rest| rest.rsplit_once('}'));
        // A comma in a value is in front of no name.
        let labels = labels.map_or("", |(labels, _)| labels).split(',');
        let names = labels.filter_map(|label| Some(label.split_once("=\"")?.0));
        let names = names.filter(|name| *name != "le").map(str::to_owned);
        measured.entry(family(name)).or_default().extend(names);
    }
    Ok(measured)
}

/// Of a histogram, the name without what its series end in.
fn family(name: &str) -> String {
    let base = ["_bucket", "_count", "_sum"]
        .iter()
        .find_map(|end| name.strip_suffix(end))
        .filter(|base| base.ends_with("_seconds"));
    base.unwrap_or(name).to_owned()
}
