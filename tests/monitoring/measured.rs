//! What is measured, as the pages say.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// The page with the table of metrics.
const PAGE: &str = "docs/monitoring.md";

/// Where a test of policies compares its metrics with what is served, in raw text.
const POLICIES: &str = "crates/operator/src/policies/metrics.rs";

/// What scraping adds.
const SCRAPED: [&str; 3] = ["app_kubernetes_io_name", "job", "pod"];

/// The labels of each metric: as the page says, which the scenario `every_metric_in_alerts_and_the_dashboard_is_exported` compares with those of an operator,
/// and as tests of policies have them.
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

/// Of a histogram, the name without what its series end in.
pub(crate) fn family(name: &str) -> &str {
    let base = name.strip_suffix("_count");
    base.filter(|base| base.ends_with("_seconds")).unwrap_or(name)
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

/// The name of a series, and its labels without what scraping adds.
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
