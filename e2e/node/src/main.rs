//! `windlass-node`: a node for the API server of the current kubeconfig.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::Context;
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use windlass_node::{Network, Options, Program};

/// A simulated node: runs the pods of the cluster in the current kubeconfig as local processes.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// The node's name.
    #[arg(long, default_value = "node")]
    name: String,

    /// The IPv4 network of the node and its pods; all of it must be local to this machine or network namespace.
    #[arg(long, value_name = "CIDR", default_value = "127.244.0.0/16")]
    addresses: Network,

    /// Where pods find the API server. Default: the Service default/kubernetes.
    #[arg(long, value_name = "IP:PORT")]
    api_server: Option<SocketAddr>,

    /// Run a local program in place of an image; may be repeated.
    #[arg(long = "image", value_name = "IMAGE=PROGRAM [ARGUMENT]...", value_parser = image)]
    images: Vec<(String, Program)>,

    /// What runs for every other image.
    #[arg(long, value_name = "PROGRAM [ARGUMENT]...", default_value = "sample-operator --stand-in", value_parser = program)]
    stand_in: Program,

    /// How long a changed Secret or ConfigMap may take to reach the pods that mount it.
    #[arg(long, value_name = "SECONDS", default_value_t = 90.0)]
    refresh_delay: f64,

    /// How much faster than written probe delays, preStop sleeps and restart back-off pass.
    #[arg(long, default_value_t = 1.0)]
    speed: f64,

    /// Where volumes and logs are written. Default: a new folder for temporary files.
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env()
                .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info")),
        )
        .with_writer(std::io::stderr)
        .init();
    // Fails only where a provider is installed already.
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = kube::Client::try_default()
        .await
        .context("cannot connect to the cluster")?;
    let shutdown = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let asked = shutdown.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        asked.cancel();
    });
    Ok(windlass_node::run(client, args.options()?, shutdown).await?)
}

// === impl Args ===

impl Args {
    fn options(self) -> anyhow::Result<Options> {
        let longest = Duration::try_from_secs_f64(self.refresh_delay).context("--refresh-delay")?;
        let defaults = Options::default();
        Ok(Options {
            name: self.name,
            addresses: self.addresses,
            api_server: self.api_server,
            images: self.images.into_iter().collect(),
            stand_in: self.stand_in,
            refresh_delay: Duration::ZERO..=longest,
            speed: self.speed,
            directory: self.directory.unwrap_or(defaults.directory),
        })
    }
}

fn image(text: &str) -> Result<(String, Program), String> {
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
