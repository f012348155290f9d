//! A simulated node for the API server of the current kubeconfig.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Context;
use clap::Args;
use windlass_node::{Network, NodeOptions, Program};
use windlass_scenarios::programs;

/// Runs a simulated node: the pods of the cluster in the current kubeconfig become local processes.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Name of the node.
    #[arg(long, default_value = "node")]
    name: String,

    /// IPv4 network of the node and its pods; must be local to this machine or network namespace.
    #[arg(long, value_name = "CIDR", default_value = "127.244.0.0/16")]
    addresses: Network,

    /// Address of the API server for pods [default: the Service default/kubernetes].
    #[arg(long, value_name = "IP:PORT")]
    api_server: Option<SocketAddr>,

    /// Run a local program instead of an image, repeatable.
    #[arg(long = "image", value_name = "IMAGE=PROGRAM [ARGUMENT]...", value_parser = image)]
    images: Vec<(String, Program)>,

    /// Program for all other images [default: the sample operator].
    #[arg(long, value_name = "PROGRAM [ARGUMENT]...", value_parser = program)]
    stand_in: Option<Program>,

    /// Maximum time until a changed Secret or ConfigMap reaches the pods that mount it.
    #[arg(long, value_name = "SECONDS", default_value_t = 90.0)]
    refresh_delay: f64,

    /// Time that a pod waits for the images of its containers.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    pull_time: f64,

    /// Factor by which probe delays, preStop sleeps and restart back-off are shortened.
    #[arg(long, default_value_t = 1.0)]
    speed: f64,

    /// Folder for volumes and logs [default: a new temporary folder].
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Runs until SIGTERM or SIGINT.
///
/// # Errors
///
/// When the cluster cannot be reached, or an argument is wrong.
pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let client = kube::Client::try_default()
        .await
        .context("cannot connect to the cluster")?;
    let shutdown = crate::shutdown::token()?;
    windlass_node::run(client, arguments.options()?, shutdown).await?;
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    fn options(self) -> anyhow::Result<NodeOptions> {
        let longest = Duration::try_from_secs_f64(self.refresh_delay).context("--refresh-delay")?;
        let defaults = NodeOptions::default();
        let stand_in = match self.stand_in {
            Some(program) => program,
            None => Program {
                path: std::env::current_exe()?,
                arguments: [programs::SAMPLE_OPERATOR, "--stand-in"]
                    .map(str::to_owned)
                    .into(),
            },
        };
        Ok(NodeOptions {
            name: self.name,
            addresses: self.addresses,
            api_server: self.api_server,
            images: self.images.into_iter().collect(),
            stand_in,
            refresh_delay: Duration::ZERO..=longest,
            pull_time: Duration::try_from_secs_f64(self.pull_time).context("--pull-time")?,
            speed: self.speed,
            directory: self.directory.unwrap_or(defaults.directory),
        })
    }
}

pub(crate) fn image(text: &str) -> Result<(String, Program), String> {
    let (image, words) = text.split_once('=').ok_or("expected IMAGE=PROGRAM")?;
    Ok((image.to_owned(), program(words)?))
}

fn program(text: &str) -> Result<Program, String> {
    let mut words = text.split_whitespace().map(ToOwned::to_owned);
    let path = words.next().ok_or("expected a program")?.into();
    Ok(Program {
        path,
        arguments: words.collect(),
    })
}
