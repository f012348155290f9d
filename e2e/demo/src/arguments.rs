//! What the demo is asked to do.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use windlass_scenarios::cluster::Access;

/// Installs a bundle in its own cluster, sends API traffic through its webhooks, rotates its certificates,
/// upgrades and removes it. Fails if any request fails.
#[derive(Debug, Parser)]
#[command(name = "cargo demo", version)]
pub struct Arguments {
    /// Bundle directories: the first is installed, each further one is an upgrade. Default: a sample with all three
    /// kinds of webhooks, and its next version.
    #[arg(value_name = "BUNDLE_DIR")]
    pub(crate) bundles: Vec<PathBuf>,

    /// Run containers of an image as a local program, for example a real operator's binary.
    #[arg(long = "run", value_name = "IMAGE=PROGRAM", value_parser = mapping)]
    pub(crate) run: Vec<(String, PathBuf)>,

    /// Minimum number of requests to send.
    #[arg(long, default_value_t = 2000)]
    pub(crate) requests: u64,

    /// Break something during the demo, to show that it notices.
    #[arg(long)]
    pub(crate) fault: Option<DemoFault>,

    /// Maximum time in seconds until a changed Secret reaches a pod; a kubelet takes up to 90.
    #[arg(long, default_value_t = 2.0)]
    pub(crate) secret_delay: f64,

    /// A cluster to use instead of the sandbox.
    #[command(flatten)]
    pub(crate) access: Access,
}

/// What the demo breaks on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoFault {
    /// Kill the webhook servers while requests are sent.
    Outage,
}

fn mapping(text: &str) -> Result<(String, PathBuf), String> {
    let (image, program) = text.split_once('=').ok_or("expected IMAGE=PROGRAM")?;
    let program = PathBuf::from(program);
    if !program.is_file() {
        return Err(format!("{} is not a file", program.display()));
    }
    Ok((image.to_owned(), program))
}
