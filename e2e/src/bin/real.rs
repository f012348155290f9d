//! Every scenario on the cluster that `E2E_KUBECONFIG` names, one after the other. `e2e/real` starts one.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, bail};
use clap::Parser;
use libtest_mimic::Trial;
use windlass_e2e::{
    audit,
    cluster::{Access, Cluster, Trouble},
    programs,
    scenarios::{SCENARIOS, Scenario},
    trial,
};

/// Runs scenarios on the cluster that a kubeconfig names. To have one started for them, use e2e/real.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Names of scenarios, or parts of names. Default: all.
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<String>,

    /// Lists the scenarios that would run.
    #[arg(long)]
    list: bool,

    #[command(flatten)]
    access: Access,

    /// A folder with the process ids of its etcd and kube-apiserver, which scenarios then kill and pause. Without it,
    /// those that do are left out.
    #[arg(long, env = "E2E_PROCESSES", value_name = "DIR")]
    processes: Option<PathBuf>,

    /// Its audit log: it must show that the operator was allowed whatever it asked for and, where all scenarios run,
    /// that it used each right that it has.
    #[arg(long, env = "E2E_AUDIT_LOG", value_name = "FILE")]
    audit_log: Option<PathBuf>,
}

fn main() -> anyhow::Result<ExitCode> {
    // Each scenario has a runtime of its own.
    programs::main(trial::LOG_FILTER, |_| run(Arguments::parse()))
}

fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let selected = selected(&arguments.scenarios)?;
    if arguments.list {
        for scenario in selected {
            println!("{}", scenario.name);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let kubeconfig = arguments.access.kubeconfig;
    let kubeconfig =
        kubeconfig.context("no cluster: start this with e2e/real, or name one with --kubeconfig")?;
    let program = std::env::current_exe()?;
    let network = arguments.access.pod_network;
    let can = |trouble: &Trouble| match trouble {
        Trouble::Restart | Trouble::Pause => arguments.processes.is_some(),
        Trouble::Errors => false,
    };
    let whole = selected.len() == SCENARIOS.len();
    let mut trials: Vec<Trial> = selected
        .into_iter()
        .map(|scenario| {
            let missing = scenario.needs.iter().find(|trouble| !can(trouble));
            if let Some(trouble) = missing {
                println!("{} is left out: {}", scenario.name, why_not(*trouble));
            }
            let (kubeconfig, program) = (kubeconfig.clone(), program.clone());
            let processes = arguments.processes.clone();
            Trial::test(scenario.name, move || {
                trial::run(scenario, &program, async || {
                    let cluster = Cluster::named(&kubeconfig, network).await?;
                    Ok(cluster.with_processes(processes))
                })
            })
            .with_ignored_flag(missing.is_some())
        })
        .collect();
    if let Some(log) = arguments.audit_log {
        trials.push(Trial::test(
            "the_operator_has_the_rights_that_it_needs",
            move || audit::check(&log, whole).map_err(|error| format!("{error:#}").into()),
        ));
    }
    let one_by_one = libtest_mimic::Arguments {
        test_threads: Some(1),
        ..libtest_mimic::Arguments::default()
    };
    Ok(libtest_mimic::run(&one_by_one, trials).exit_code())
}

/// Why a cluster cannot be made to suffer this.
fn why_not(trouble: Trouble) -> &'static str {
    match trouble {
        Trouble::Restart | Trouble::Pause => {
            "E2E_PROCESSES does not say where the etcd and kube-apiserver of this cluster run"
        }
        Trouble::Errors => "only the sandbox fails at random",
    }
}

/// The scenarios with these names or parts of names; all when there are none.
fn selected(names: &[String]) -> anyhow::Result<Vec<&'static Scenario>> {
    let matches = |name: &str, scenario: &Scenario| scenario.name.contains(name);
    for name in names {
        if !SCENARIOS.iter().any(|scenario| matches(name, scenario)) {
            bail!("there is no scenario {name:?}; --list names all");
        }
    }
    let all = names.is_empty();
    Ok(SCENARIOS
        .iter()
        .filter(|scenario| all || names.iter().any(|name| matches(name, scenario)))
        .collect())
}
