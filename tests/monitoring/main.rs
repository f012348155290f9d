//! The alerts and the dashboard: each alert has a page and fires, and `promtool` accepts them.
//!
//! Without `promtool` (Debian: `prometheus`) the tests that need it say so and are skipped.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use serde_json::{Value, json};
use windlass::commands::manifests;
use windlass_object::object;

mod firing;
mod measured;
mod resting;

use self::{
    firing::FIRING,
    measured::{family, known_labels},
    resting::RESTING,
};

/// When it is looked whether any has fired that should not, and for the one that takes longest.
const TIMES: [&str; 4] = ["6m", "16m", "45m", "2h"];
const LATER: [&str; 2] = ["12h", LATE];

/// How many of each alert fire.
const FIRED: &str = "count by (alertname) (ALERTS{alertstate=\"firing\"})";

/// When all have fired: after a day, for the one that takes longest.
const LATE: &str = "1d10m";

/// Somebody leads.
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

/// Runs `promtool` on a file with this content; `None` where there is no `promtool`.
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
    assert_eq!(unused, [""; 0], "pages of no alert");
}

#[test]
fn the_table_of_alerts_says_what_the_rules_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let written = fs::read_to_string(root.join("docs/monitoring.md")).unwrap();
    let (_, table) = written.split_once("\n| alert |").expect("no table of alerts");
    // After the rest of its head, and the line below that.
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
fn every_alert_fires_and_no_other_with_it() {
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
    assert_eq!(
        alerts, examples,
        "an alert has no example, or the other way round"
    );
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
fn no_alert_fires_without_need() {
    let folder = tempfile::tempdir().unwrap();
    let rules = manifests::rule_groups().to_string();
    fs::write(folder.path().join("rules.json"), rules).unwrap();
    let mut alerts: Vec<_> = RESTING.iter().map(|resting| resting.alert).collect();
    alerts.sort_unstable();
    alerts.dedup();
    let mut expected: Vec<_> = FIRING.iter().map(|(alert, _)| *alert).collect();
    expected.sort_unstable();
    assert_eq!(
        alerts, expected,
        "for an alert it is not said when it does not fire"
    );
    let tests: Vec<_> = RESTING
        .iter()
        .map(|resting| {
            let series = resting.series.iter().chain(&[LEADER]);
            let input: Vec<_> = series
                .map(|(series, values)| json!({"series": series, "values": values}))
                .collect();
            let later = LATER.iter().filter(|_| resting.alert == "WindlassRotationWaits");
            let times = TIMES.iter().chain(later);
            let looks: Vec<_> = times
                .map(|time| json!({"expr": FIRED, "eval_time": time, "exp_samples": []}))
                .collect();
            json!({
                "name": format!("{}: {}", resting.alert, resting.because), "interval": "1m", "input_series": input,
                "promql_expr_test": looks,
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
fn series_of_examples_have_the_labels_that_are_served() {
    let labels = known_labels();
    let firing = FIRING.iter().flat_map(|(_, series)| *series);
    let resting = RESTING.iter().flat_map(|resting| resting.series);
    for (series, _) in firing
        .chain(resting)
        .filter(|(series, _)| !series.starts_with("up{"))
    {
        let (name, own) = measured::series(series);
        let expected = labels.get(family(name));
        let expected = expected.unwrap_or_else(|| panic!("nobody says which labels {name} has"));
        assert_eq!(own, *expected, "{series}");
    }
}

#[test]
fn promtool_accepts_the_rules_and_what_the_dashboard_asks() {
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
    let asked = json!({"groups": [{"name": "dashboard", "rules": queries}]});
    for (file, content) in [("rules.json", manifests::rule_groups()), ("asked.json", asked)] {
        fs::write(folder.path().join(file), content.to_string()).unwrap();
        if let Some(result) = promtool(&["check", "rules"], folder.path(), file) {
            result.unwrap();
        }
    }
}
