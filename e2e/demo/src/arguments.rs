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

    /// Start etcd, kube-apiserver and kube-controller-manager, and use them instead of the sandbox. The first time, they are
    /// built with Go, which takes about 11 minutes.
    #[arg(long)]
    pub(crate) real: bool,

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

// === impl Arguments ===

impl Arguments {
    /// Whether a control plane is to be started before the demo is.
    pub fn needs_control_plane(&self) -> bool {
        self.real && self.access.kubeconfig.is_none()
    }

    /// What the demo runs on, and what else it could.
    pub(crate) fn ground(&self) -> String {
        let is_started_for_this = std::env::var_os("E2E_CONTROL_PLANES").is_some();
        match &self.access.kubeconfig {
            Some(_) if is_started_for_this => {
                "On a real control plane: etcd, kube-apiserver and kube-controller-manager".to_owned()
            }
            Some(kubeconfig) => format!("On the cluster of {}", kubeconfig.display()),
            None => format!(
                "On the sandbox, a small API server of this repository{}",
                self.hint()
            ),
        }
    }

    /// What may be wrong where a program of the user's own does not work.
    pub(crate) fn hint(&self) -> &'static str {
        if self.run.is_empty() || self.access.kubeconfig.is_some() {
            ""
        } else {
            ". It speaks JSON only, and programs built with client-go may ask for protobuf: --real starts a kube-apiserver instead"
        }
    }
}

fn mapping(text: &str) -> Result<(String, PathBuf), String> {
    let (image, program) = text.split_once('=').ok_or("expected IMAGE=PROGRAM")?;
    let program = PathBuf::from(program);
    if !program.is_file() {
        return Err(format!("{} is not a file", program.display()));
    }
    Ok((image.to_owned(), program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_plane_is_started_where_it_is_asked_for_and_no_cluster_is_named() {
        let parse = |arguments: &[&str]| Arguments::parse_from([&["demo"], arguments].concat());
        assert!(!parse(&[]).needs_control_plane());
        assert!(parse(&["--real"]).needs_control_plane());
        assert!(!parse(&["--real", "--kubeconfig", "file"]).needs_control_plane());
    }

    #[test]
    fn whoever_brings_a_program_to_the_sandbox_is_told_what_that_lacks() {
        let mut arguments = Arguments::parse_from(["demo"]);
        assert_eq!(arguments.hint(), "");
        arguments.run.push(("image".to_owned(), "program".into()));
        assert!(arguments.hint().contains("--real"));
        assert!(arguments.ground().starts_with("On the sandbox"));
    }
}
