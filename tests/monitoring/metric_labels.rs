//! The documented labels of each metric.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// The page with the table of metrics.
const PAGE: &str = "docs/monitoring.md";

/// A test of policies that compares its metrics with the exported ones, as raw text.
const POLICIES: &str = "crates/operator/src/policies/metrics.rs";

/// The labels that scraping adds.
const SCRAPED: [&str; 3] = ["app_kubernetes_io_name", "job", "pod"];

/// Returns the labels of each metric: from the page, which the scenario
/// `every_metric_in_alerts_and_the_dashboard_is_exported` compares with those of an operator, and from the
/// tests of policies.
pub(crate) fn known_labels() -> BTreeMap<String, BTreeSet<String>> {
    #[expect(clippy::unwrap_used, reason = "a file that cannot be read fails the test")]
    let read = |file| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let mut found = BTreeMap::new();
    for row in read(PAGE).lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let labels: BTreeSet<_> = quoted(cells[2]).map(str::to_owned).collect();
        found.extend(quoted(cells[1]).map(|name| (name.to_owned(), labels.clone())));
    }
    let served = read(POLICIES);
    let served = served.lines().filter_map(|line| line.trim().strip_prefix("r#\""));
    for line in served.filter_map(|line| Some(line.split_once('}')?.0)) {
        let (name, labels) = series(line);
        found.insert(family(name).to_owned(), labels);
    }
    found
}

/// Returns the name of a metric, for a histogram without the suffix of its series.
pub(crate) fn family(name: &str) -> &str {
    let base = name.strip_suffix("_count");
    base.filter(|base| base.ends_with("_seconds")).unwrap_or(name)
}

/// Returns the texts between backticks that are not in parentheses.
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

/// Returns the name of a series, and its labels without those that scraping adds.
pub(crate) fn series(series: &str) -> (&str, BTreeSet<String>) {
    let (name, labels) = series
        .trim_end_matches('}')
        .split_once('{')
        .unwrap_or((series, ""));
    let labels = labels
        .split(',')
        .filter_map(|label| Some(label.split_once("=\"")?.0.trim()));
    let labels = labels.filter(|label| !SCRAPED.contains(label));
    (name, labels.map(str::to_owned).collect())
}
