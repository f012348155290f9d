//! The pages are self-contained and escape foreign text.
#![allow(clippy::unwrap_used, reason = "tests")]

mod pages;

use pages::{HOSTILE, STATES, report};
use windlass_report::ProblemSeverity;

#[test]
fn the_page_loads_nothing_and_runs_no_script() {
    for state in STATES {
        let page = report(state).to_html().unwrap();
        for foreign in [
            "<script",
            "http://",
            "https://",
            "src=",
            "url(",
            "@import",
            "javascript:",
            "<link",
            "<iframe",
        ] {
            assert!(!page.contains(foreign), "{state} contains {foreign}");
        }
        assert!(page.contains("default-src 'none'"), "{state}");
    }
}

#[test]
fn foreign_text_is_escaped() {
    let page = report("failing").to_html().unwrap();
    assert!(!page.contains(HOSTILE));
    assert!(page.contains("&#60;script&#62;alert(1)"));
}

#[test]
fn the_worst_problem_comes_first() {
    let report = report("failing");
    let reasons: Vec<_> = report
        .problems()
        .iter()
        .map(|problem| (problem.severity, problem.reason.as_str()))
        .collect();
    assert!(reasons.is_sorted_by_key(|(severity, _)| *severity), "{reasons:?}");
    for expected in [
        (ProblemSeverity::Failing, "Expired"),
        (ProblemSeverity::Failing, "PodsFailing"),
        (ProblemSeverity::Failing, "NothingTrusted"),
        (ProblemSeverity::Waiting, "TargetFailing"),
        (ProblemSeverity::Waiting, "TargetContested"),
        (ProblemSeverity::Waiting, "ServingCertificateNotFound"),
    ] {
        assert!(reasons.contains(&expected), "no {expected:?} in {reasons:?}");
    }
    for state in ["empty", "quiet", "rotating"] {
        assert_eq!(pages::report(state).problems(), [], "{state}");
    }
}

#[test]
fn running_steps_state_what_they_wait_for() {
    let page = report("rotating").to_html().unwrap();
    for expected in [
        "waiting for API servers to read it",
        "1 of 2 new pods are ready",
        "Nothing is wrong",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
}
