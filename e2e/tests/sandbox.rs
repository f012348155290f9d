//! Runs the scenarios of the sandbox, each in its own test cluster.

use std::{path::Path, process::ExitCode, sync::Arc};

use libtest_mimic::{Arguments, Trial};
use windlass_scenarios::{
    programs,
    scenario_durations::ScenarioDurations,
    scenarios::{SCENARIOS, TestBed},
    trial,
};

fn main() -> ExitCode {
    // This fails only if a provider is installed already, and any provider will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    programs::log(trial::LOG_FILTER);
    let mut arguments = Arguments::from_args();
    // Scenarios mostly wait, so more of them than cores run in parallel.
    arguments.test_threads.get_or_insert(6);
    let program = Path::new(env!("CARGO_BIN_EXE_e2e"));
    let durations = Arc::new(ScenarioDurations::default());
    let trials = SCENARIOS
        .iter()
        .filter(|scenario| scenario.beds.contains(&TestBed::Sandbox))
        .map(|scenario| {
            let durations = durations.clone();
            Trial::test(scenario.name, move || {
                trial::run_on_sandbox(scenario, program, &durations)
            })
        })
        .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !arguments.list {
        println!("{durations}");
    }
    conclusion.exit_code()
}
