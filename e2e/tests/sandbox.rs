//! Every scenario on the sandbox, each in a bed of its own.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use windlass_e2e::{
    bed::{Bed, Options},
    scenarios::{SCENARIOS, Scenario},
};

fn main() -> ExitCode {
    // It fails only where one is installed already, and any will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    tracing_subscriber::fmt()
        .with_env_filter("warn,windlass_e2e=info")
        .with_writer(std::io::stderr)
        .init();
    let mut arguments = Arguments::from_args();
    // Scenarios mostly wait; a few more than there are cores keep those busy.
    arguments.test_threads.get_or_insert(4);
    let trials = SCENARIOS
        .iter()
        .map(|scenario| Trial::test(scenario.name, || run(scenario)))
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn run(scenario: &Scenario) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let bed = Bed::on_sandbox(Options::new(env!("CARGO_BIN_EXE_demo"))).await?;
        let outcome = scenario.run(&bed).await;
        let log = bed.log_tail();
        bed.stop().await;
        outcome.map_err(|error| format!("{error:?}\nThe end of the operator's log:\n{log}").into())
    })
}
