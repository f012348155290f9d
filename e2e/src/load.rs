//! Requests through the webhooks of an installed sample.

use std::{fs, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Context;
use clap::Args;
use serde_json::json;
use windlass_scenarios::{
    cluster,
    load::{Clients, Load},
    resource::{Expectation, Resource},
    steps,
};

/// Number of requests after which the start of the traffic is reported.
const FIRST: u64 = 50;

/// Sends requests through the conversion and admission webhooks of the sample until SIGTERM or SIGINT, and
/// reports failures.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Kubeconfig of the cluster where the sample is installed.
    #[arg(long, env = "E2E_KUBECONFIG", value_name = "FILE")]
    kubeconfig: PathBuf,

    /// Namespace of the requests; created if it is missing.
    #[arg(long, default_value = "traffic")]
    namespace: String,

    /// Versions of widgets to request.
    #[arg(
        long,
        value_name = "VERSION",
        value_delimiter = ',',
        default_value = "v1,v1beta1"
    )]
    versions: Vec<String>,

    /// Number of concurrent workers.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: u16,

    /// Pause of each worker between two requests.
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 30)]
    pause: u64,
}

/// Sends requests. Prints a line once they are answered, and a summary at the end.
///
/// # Errors
///
/// When the kubeconfig cannot be used, the namespace cannot be created, or a request failed.
pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let shutdown = crate::shutdown::token()?;
    let kubeconfig = fs::read_to_string(&arguments.kubeconfig)
        .with_context(|| format!("cannot read {}", arguments.kubeconfig.display()))?;
    let client = cluster::client(&kubeconfig).await?;
    let path = format!("/api/v1/namespaces/{}", arguments.namespace);
    if steps::get(&client, &path).await?.is_none() {
        let namespace = json!({"metadata": {"name": arguments.namespace}});
        steps::succeed(&client, "POST", "/api/v1/namespaces", Some(&namespace)).await?;
    }
    let versions: Vec<&str> = arguments.versions.iter().map(String::as_str).collect();
    let load = Load::start(
        &client,
        &arguments.namespace,
        &[Resource::widgets(&versions, Expectation::Admitted)],
        arguments.workers.into(),
        Duration::from_millis(arguments.pause),
        Clients::Strict,
    );
    tokio::select! {
        sent = load.at_least(FIRST) => {
            sent?;
            println!("Requests are sent");
        }
        () = shutdown.cancelled() => {}
    }
    shutdown.cancelled().await;
    let report = load.stop().await;
    println!(
        "{} requests in {:.0} s, {} failed; the longest time without an answer was {:.1} s",
        report.requests,
        report.took.as_secs_f32(),
        report.failed,
        report.longest_gap.as_secs_f32()
    );
    report.check()?;
    Ok(ExitCode::SUCCESS)
}
