//! The alerts and the dashboard: each alert has a page and fires, and `promtool` accepts them.
//!
//! Without `promtool` (Debian: `prometheus`), the tests that need it are skipped with a message.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use serde_json::{Value, json};
use windlass::commands::manifests;
use windlass_object::object;

mod firing_alerts;
mod metric_labels;
mod quiet_alerts;

use self::{
    firing_alerts::FIRING,
    metric_labels::{family, known_labels},
    quiet_alerts::QUIET,
};

/// When the tests check that no alert fires; `LATER` is for the slowest alert.
const TIMES: [&str; 4] = ["6m", "16m", "45m", "2h"];
const LATER: [&str; 2] = ["12h", LATE];

/// The number of firing instances of each alert.
const FIRED: &str = "count by (alertname) (ALERTS{alertstate=\"firing\"})";

/// The time by which all alerts fire: the slowest needs a day.
const LATE: &str = "1d10m";

/// A series of a replica that is the leader.
const LEADER: (&str, &str) = ("windlass_leader{app_kubernetes_io_name=\"another\"}", "1x3000");

fn rules() -> Vec<Value> {
    let groups = manifests::rule_groups();
    let groups = object::items(&groups, "/groups").iter();
    groups
        .flat_map(|group| object::items(group, "/rules").to_vec())
        .collect()
}

fn text<'a>(rule: &'a Value, field: &str) -> &'a str {
    rule[field].as_str().unwrap_or_default()
}

/// Runs `promtool` on a file with this content; returns `None` if `promtool` is not installed.
fn promtool(arguments: &[&str], folder: &Path, file: &str) -> Option<Result<(), String>> {
    let run = Command::new("promtool")
        .args(arguments)
        .arg(folder.join(file))
        .output();
    let Ok(output) = run else {
        eprintln!("SKIPPED: promtool not found; install Debian's package prometheus");
        return None;
    };
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    Some(
        output
            .status
            .success()
            .then_some(())
            .ok_or_else(|| said.into_owned()),
    )
}

#[test]
fn every_alert_has_a_page_and_a_summary() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/runbooks");
    let mut unused: Vec<_> = fs::read_dir(&pages)
        .unwrap()
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .collect();
    for rule in rules() {
        let page = format!("{}.md", text(&rule, "alert"));
        let annotations = &rule["annotations"];
        assert!(text(annotations, "runbook_url").ends_with(&format!("docs/runbooks/{page}")));
        assert!(text(annotations, "summary").ends_with('.'), "{rule}");
        let written = fs::read_to_string(pages.join(&page)).expect(&page);
        assert!(
            written.starts_with(&format!("# {}\n", text(&rule, "alert"))),
            "{page}"
        );
        unused.retain(|known| *known != page);
    }
    assert_eq!(unused, [""; 0], "pages without an alert");
}

#[test]
fn the_table_of_alerts_matches_the_rules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let written = fs::read_to_string(root.join("docs/monitoring.md")).unwrap();
    let (_, table) = written.split_once("\n| alert |").expect("no table of alerts");
    // Skips the rest of the header row and the line below it.
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let rows: Vec<_> = rows.collect();
    let expected: Vec<_> = rules()
        .iter()
        .map(|rule| {
            let alert = text(rule, "alert");
            let (severity, after) = (text(&rule["labels"], "severity"), text(rule, "for"));
            format!("| [{alert}](runbooks/{alert}.md) | {severity} | {after} |")
        })
        .collect();
    assert_eq!(rows, expected);
}

#[test]
fn every_alert_fires_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("rules.json"),
        manifests::rule_groups().to_string(),
    )
    .unwrap();
    let firing: BTreeMap<_, _> = FIRING.into_iter().collect();
    let names: Vec<_> = rules()
        .iter()
        .map(|rule| text(rule, "alert").to_owned())
        .collect();
    let mut examples: Vec<_> = firing.keys().copied().collect();
    let mut alerts: Vec<_> = names.iter().map(String::as_str).collect();
    examples.sort_unstable();
    alerts.sort_unstable();
    assert_eq!(alerts, examples, "the alerts and the examples differ");
    let tests: Vec<_> = firing
        .iter()
        .map(|(alert, series)| {
            let input: Vec<_> = series
                .iter()
                .map(|(series, values)| json!({"series": series, "values": values}))
                .chain((*alert != "WindlassDown").then(|| json!({"series": LEADER.0, "values": LEADER.1})))
                .collect();
            json!({
                "name": alert,
                "interval": "1m",
                "input_series": input,
                "promql_expr_test": [{
                    "expr": FIRED,
                    "eval_time": LATE,
                    "exp_samples": [{"labels": format!("{{alertname={alert:?}}}"), "value": 1}],
                }],
            })
        })
        .collect();
    let test = json!({"rule_files": ["rules.json"], "evaluation_interval": "1m", "tests": tests});
    fs::write(folder.path().join("test.json"), test.to_string()).unwrap();
    if let Some(result) = promtool(&["test", "rules"], folder.path(), "test.json") {
        result.unwrap();
    }
}

#[test]
fn no_alert_fires_without_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    let rules = manifests::rule_groups().to_string();
    fs::write(folder.path().join("rules.json"), rules).unwrap();
    let mut alerts: Vec<_> = QUIET.iter().map(|quiet| quiet.alert).collect();
    alerts.sort_unstable();
    alerts.dedup();
    let mut expected: Vec<_> = FIRING.iter().map(|(alert, _)| *alert).collect();
    expected.sort_unstable();
    assert_eq!(
        alerts, expected,
        "the alerts with and without a quiet example differ"
    );
    let tests: Vec<_> = QUIET
        .iter()
        .map(|quiet| {
            let series = quiet.series.iter().chain(&[LEADER]);
            let input: Vec<_> = series
                .map(|(series, values)| json!({"series": series, "values": values}))
                .collect();
            let later = LATER.iter().filter(|_| quiet.alert == "WindlassRotationWaits");
            let times = TIMES.iter().chain(later);
            let checks: Vec<_> = times
                .map(|time| json!({"expr": FIRED, "eval_time": time, "exp_samples": []}))
                .collect();
            json!({
                "name": format!("{}: {}", quiet.alert, quiet.because), "interval": "1m", "input_series": input,
                "promql_expr_test": checks,
            })
        })
        .collect();
    let test = json!({"rule_files": ["rules.json"], "evaluation_interval": "1m", "tests": tests});
    fs::write(folder.path().join("test.json"), test.to_string()).unwrap();
    if let Some(result) = promtool(&["test", "rules"], folder.path(), "test.json") {
        result.unwrap();
    }
}

#[test]
fn series_of_examples_have_the_exported_labels() {
    let labels = known_labels();
    let firing = FIRING.iter().flat_map(|(_, series)| *series);
    let quiet = QUIET.iter().flat_map(|quiet| quiet.series);
    for (series, _) in firing
        .chain(quiet)
        .filter(|(series, _)| !series.starts_with("up{"))
    {
        let (name, own) = metric_labels::series(series);
        let expected = labels.get(family(name));
        let expected = expected.unwrap_or_else(|| panic!("the labels of {name} are not documented"));
        assert_eq!(own, *expected, "{series}");
    }
}

#[test]
fn promtool_accepts_the_rules_and_the_queries_of_the_dashboard() {
    let folder = tempfile::tempdir().unwrap();
    let queries: Vec<_> = manifests::dashboard()["panels"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|panel| panel["targets"].as_array().cloned().unwrap_or_default())
        .enumerate()
        .map(|(number, target)| json!({"record": format!("panel:{number}"), "expr": target["expr"]}))
        .collect();
    assert!(queries.len() > 20);
    let queries_file = json!({"groups": [{"name": "dashboard", "rules": queries}]});
    for (file, content) in [
        ("rules.json", manifests::rule_groups()),
        ("queries.json", queries_file),
    ] {
        fs::write(folder.path().join(file), content.to_string()).unwrap();
        if let Some(result) = promtool(&["check", "rules"], folder.path(), file) {
            result.unwrap();
        }
    }
}
