//! Runs every scenario on the sandbox, each in its own test cluster.

use std::{path::Path, process::ExitCode, sync::Arc};

use libtest_mimic::{Arguments, Trial};
use windlass_scenarios::{
    cluster::Disruption, programs, scenario_durations::ScenarioDurations, scenarios::SCENARIOS, trial,
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
        .map(|scenario| {
            // Programs built with controller-runtime need more of an API server than the sandbox has, which
            // runs only the controllers of Deployments.
            let lacks = [
                Disruption::ControllerRuntime,
                Disruption::Cainjector,
                Disruption::Helm,
                Disruption::Controllers,
                Disruption::AdmissionPolicies,
                Disruption::Impersonation,
            ];
            let is_left_out = scenario.needs.iter().any(|need| lacks.contains(need));
            let durations = durations.clone();
            Trial::test(scenario.name, move || {
                trial::run_on_sandbox(scenario, program, &durations)
            })
            .with_ignored_flag(is_left_out)
        })
        .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !arguments.list {
        println!("{durations}");
    }
    conclusion.exit_code()
}
