//! Runs scenarios on existing clusters, one after the other. `e2e/real` starts such clusters.

use std::{
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::Arc,
};

use anyhow::{Context, bail};
use clap::Args;
use libtest_mimic::Trial;
use windlass_scenarios::{
    audit, cainjector,
    cluster::{Access, Disruption},
    cluster_pool::{ClusterPool, Existing},
    gitops, helm, sample,
    scenario_durations::ScenarioDurations,
    scenarios::{SCENARIOS, Scenario, TestBed},
    second_api_server::SecondApiServer,
    trial,
};

/// Runs scenarios on existing clusters. To start clusters for them, use e2e/real.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Names of scenarios, or parts of names [default: all].
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<String>,

    /// Where the scenarios run: those of another bed are not selected.
    #[arg(long, env = "E2E_BED", value_name = "BED", value_parser = bed, default_value = "api-server")]
    bed: TestBed,

    /// Skip scenarios whose steps another scenario contains.
    #[arg(long)]
    brief: bool,

    /// List the scenarios that would run.
    #[arg(long)]
    list: bool,

    #[command(flatten)]
    access: Access,

    /// Folders of control planes, separated by colons: see e2e/cluster/start. Each scenario gets one of
    /// its own. Their audit logs must show that no request of the operator was forbidden and, if all
    /// scenarios run, that it used each of its rights.
    #[arg(long, env = "E2E_CONTROL_PLANES", value_name = "DIR", value_delimiter = ':')]
    control_planes: Vec<PathBuf>,
}

/// Runs the selected scenarios.
///
/// # Errors
///
/// When a selected scenario or cluster does not exist.
pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let mut selected = selected(&arguments.scenarios, arguments.bed)?;
    // Scenarios on the API server use every right.
    let did_everything = arguments.scenarios.is_empty() && arguments.bed == TestBed::ApiServer;
    if arguments.brief {
        selected.retain(|scenario| scenario.within.is_none());
    }
    if arguments.list {
        for scenario in selected {
            println!("{}", scenario.name);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let clusters = clusters(&arguments)?;
    let program = std::env::current_exe()?;
    let can = |disruption: &Disruption| match disruption {
        Disruption::Restart | Disruption::Pause => clusters.iter().all(Existing::may_be_killed),
        Disruption::Faults => false,
        Disruption::Controllers | Disruption::AdmissionPolicies | Disruption::Impersonation => true,
        Disruption::ControllerRuntime => std::env::var_os(sample::CONTROLLER_RUNTIME_PROGRAM).is_some(),
        Disruption::Cainjector => std::env::var_os(cainjector::PROGRAM).is_some(),
        Disruption::Gitops => std::env::var_os(gitops::PROGRAM).is_some(),
        Disruption::Helm => std::env::var_os(helm::PROGRAM).is_some(),
        Disruption::SecondApiServer => SecondApiServer::exists(),
    };
    let pool = Arc::new(ClusterPool::new(clusters.clone()));
    let durations = Arc::new(ScenarioDurations::default());
    let trials: Vec<Trial> = selected
        .into_iter()
        .map(|scenario| {
            let missing = scenario.needs.iter().find(|disruption| !can(disruption));
            if let Some(disruption) = missing {
                println!(
                    "{} is skipped: {}",
                    scenario.name,
                    unavailable_reason(*disruption)
                );
            }
            let (pool, program, durations) = (pool.clone(), program.clone(), durations.clone());
            Trial::test(scenario.name, move || {
                trial::run_on_borrowed(scenario, &program, &durations, &pool)
            })
            .with_ignored_flag(missing.is_some())
        })
        .collect();
    let one_each = libtest_mimic::Arguments {
        test_threads: Some(clusters.len()),
        ..libtest_mimic::Arguments::default()
    };
    let mut conclusion = libtest_mimic::run(&one_each, trials);
    println!("{durations}");
    let logs: Vec<PathBuf> = clusters.iter().filter_map(Existing::audit_log).collect();
    if !logs.is_empty() {
        let rights = Trial::test("the_operator_has_the_rights_that_it_needs", move || {
            audit::check(&logs, did_everything).map_err(|error| format!("{error:#}").into())
        });
        let rights = libtest_mimic::run(&one_each, vec![rights]);
        conclusion.num_failed += rights.num_failed;
    }
    Ok(conclusion.exit_code())
}

/// Runs this program again, with the same arguments and a new control plane. Returns only if that fails.
pub(crate) fn restart_with_control_plane() -> anyhow::Error {
    let start = Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster/run");
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return error.into(),
    };
    let error = Command::new(&start)
        .args(["--nodes", "0"])
        .arg(program)
        .args(std::env::args_os().skip(1))
        .exec();
    anyhow::Error::new(error).context(format!("cannot start {}", start.display()))
}

/// Returns the selected clusters.
fn clusters(arguments: &Arguments) -> anyhow::Result<Vec<Existing>> {
    if !arguments.control_planes.is_empty() {
        let folders = arguments.control_planes.iter();
        return folders.map(|folder| Existing::in_folder(folder)).collect();
    }
    let access = &arguments.access;
    let kubeconfig = access
        .kubeconfig
        .clone()
        .context("no cluster: use e2e/real to start one, or specify one with --kubeconfig")?;
    Ok(vec![Existing {
        kubeconfig,
        pods: access.pods(),
        folder: None,
    }])
}

/// Returns why a disruption is not possible.
fn unavailable_reason(disruption: Disruption) -> &'static str {
    match disruption {
        Disruption::Restart | Disruption::Pause => {
            "the processes of etcd and kube-apiserver are unknown: set --control-planes"
        }
        Disruption::Faults => "only the sandbox can inject faults",
        Disruption::Controllers => "this cluster runs no controllers",
        Disruption::AdmissionPolicies => "this cluster has no admission policies",
        Disruption::Impersonation => "this cluster does not allow impersonation",
        Disruption::ControllerRuntime => {
            "E2E_WEBHOOK_SERVER is not set: build the program with e2e/go-program webhook-server"
        }
        Disruption::Helm => "E2E_HELM is not set: build the program with e2e/helm/build",
        Disruption::Cainjector => {
            "E2E_CAINJECTOR is not set: build the program with e2e/go-program cainjector"
        }
        Disruption::SecondApiServer => "the cluster has one API server: use --api-servers 2",
        Disruption::Gitops => "E2E_GITOPS is not set: build the program with e2e/go-program gitops",
    }
}

/// Returns the scenarios of a bed whose name contains one of `names`; all if `names` is empty.
fn selected(names: &[String], bed: TestBed) -> anyhow::Result<Vec<&'static Scenario>> {
    let matches = |name: &str, scenario: &Scenario| scenario.name.contains(name);
    let on_bed: Vec<_> = SCENARIOS
        .iter()
        .filter(|scenario| scenario.beds.contains(&bed))
        .collect();
    for name in names {
        if on_bed.iter().any(|scenario| matches(name, scenario)) {
            continue;
        }
        match SCENARIOS.iter().find(|scenario| matches(name, scenario)) {
            Some(other) => bail!(
                "{} runs on {:?}, not on {bed:?}; see --bed",
                other.name,
                other.beds
            ),
            None => bail!("there is no scenario {name:?}; --list names all"),
        }
    }
    let all = names.is_empty();
    let is_selected = |scenario: &&Scenario| all || names.iter().any(|name| matches(name, scenario));
    Ok(on_bed.into_iter().filter(is_selected).collect())
}

/// Parses a bed with a cluster of its own.
fn bed(name: &str) -> Result<TestBed, String> {
    match name {
        "api-server" => Ok(TestBed::ApiServer),
        "cluster" => Ok(TestBed::Cluster),
        _ => Err("expected api-server or cluster".to_owned()),
    }
}
