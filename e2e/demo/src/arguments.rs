//! The arguments of the demo.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use windlass_scenarios::cluster::Access;

/// Installs a bundle in its own cluster, sends API traffic through its webhooks, rotates its certificates,
/// upgrades and removes it. Fails if any request fails.
#[derive(Debug, Parser)]
#[command(name = "cargo demo", version)]
pub struct Arguments {
    /// Bundle directories: the first is installed, the others are upgrades [default: a sample and its next
    /// version].
    #[arg(value_name = "BUNDLE_DIR")]
    pub(crate) bundles: Vec<PathBuf>,

    /// Run the containers of an image as a local program, such as a real operator's binary.
    #[arg(long = "run", value_name = "IMAGE=PROGRAM", value_parser = mapping)]
    pub(crate) run: Vec<(String, PathBuf)>,

    /// Minimum number of requests to send.
    #[arg(long, default_value_t = 2000)]
    pub(crate) requests: u64,

    /// Break something during the demo, to show that failures are detected.
    #[arg(long)]
    pub(crate) fault: Option<DemoFault>,

    /// Maximum seconds until a changed Secret reaches a pod; a kubelet takes up to 90.
    #[arg(long, default_value_t = 2.0)]
    pub(crate) secret_delay: f64,

    /// Use a real etcd, kube-apiserver and kube-controller-manager instead of the sandbox (first build: about
    /// 10 minutes).
    #[arg(long)]
    pub(crate) real: bool,

    /// An existing cluster to use instead of the sandbox.
    #[command(flatten)]
    pub(crate) access: Access,
}

/// Faults that the demo can inject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoFault {
    /// Kill the webhook servers while requests are sent.
    Outage,
}

impl Arguments {
    /// Reports whether a control plane must be started for the demo.
    pub fn needs_control_plane(&self) -> bool {
        self.real && self.access.kubeconfig.is_none()
    }

    /// Describes the cluster of the demo.
    pub(crate) fn cluster_description(&self) -> String {
        let is_started_for_this = std::env::var_os("E2E_CONTROL_PLANES").is_some();
        match &self.access.kubeconfig {
            Some(_) if is_started_for_this => {
                "Cluster: a real control plane (etcd, kube-apiserver and kube-controller-manager)".to_owned()
            }
            Some(kubeconfig) => format!("Cluster: {}", kubeconfig.display()),
            None => format!(
                "Cluster: the sandbox, a small API server of this repository{}",
                self.hint()
            ),
        }
    }

    /// Returns advice for users who run their own programs in the sandbox.
    pub(crate) fn hint(&self) -> &'static str {
        if self.run.is_empty() || self.access.kubeconfig.is_some() {
            ""
        } else {
            ". It supports JSON only, and programs built with client-go may send protobuf: --real starts a kube-apiserver instead"
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
    fn a_control_plane_is_started_on_request() {
        let parse = |arguments: &[&str]| Arguments::parse_from([&["demo"], arguments].concat());
        assert!(!parse(&[]).needs_control_plane());
        assert!(parse(&["--real"]).needs_control_plane());
        assert!(!parse(&["--real", "--kubeconfig", "file"]).needs_control_plane());
    }

    #[test]
    fn users_of_local_programs_are_told_about_sandbox_limits() {
        let mut arguments = Arguments::parse_from(["demo"]);
        assert_eq!(arguments.hint(), "");
        arguments.run.push(("image".to_owned(), "program".into()));
        assert!(arguments.hint().contains("--real"));
        assert!(
            arguments
                .cluster_description()
                .starts_with("Cluster: the sandbox")
        );
    }
}
