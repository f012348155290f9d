//! Every case file yields problems by field, or its cases run deterministically.

#![no_main]

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

use libfuzzer_sys::fuzz_target;
use policy::{
    CompiledPolicy, Engines, EvaluationBudget, PolicySet,
    cases::{CasePolicy, PolicyCases},
};
use serde_json::Value;

/// The time limit for a file of a few kilobytes.
const PATIENCE: Duration = Duration::from_secs(10);

static ENGINES: LazyLock<Engines> = LazyLock::new(Engines::built_in);

fuzz_target!(|input: &[u8]| {
    let Ok(document) = serde_json::from_slice::<Value>(input) else {
        return;
    };
    let started = Instant::now();
    match PolicyCases::read(&document) {
        Err(problems) => assert!(problems.iter().all(|problem| !problem.message.is_empty())),
        Ok(file) => run(&file),
    }
    assert!(started.elapsed() < PATIENCE, "it took {:?}", started.elapsed());
});

/// Runs all cases twice.
fn run(file: &PolicyCases) {
    let policies = file.policies.iter().filter_map(|policy| match policy {
        CasePolicy::Inline(policy) => CompiledPolicy::compile(policy, &ENGINES).ok(),
        CasePolicy::File(_) => None,
    });
    let set = PolicySet::new(policies.map(Into::into));
    let budget = EvaluationBudget {
        steps: 20_000,
        ..EvaluationBudget::default()
    };
    for case in file.cases.iter().take(16) {
        let outcome = case.run(&set, &file.data, &budget);
        assert_eq!(outcome, case.run(&set, &file.data, &budget), "{}", case.name);
    }
}
