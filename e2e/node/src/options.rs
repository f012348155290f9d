//! How a node is set up.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    ops::RangeInclusive,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::address::Network;

/// How a node is set up.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// The node's name.
    pub name: String,
    /// The node's and its pods' addresses. All of them must be local to this machine or network namespace.
    pub addresses: Network,
    /// Where pods find the API server. Default: the Service `default/kubernetes`.
    pub api_server: Option<SocketAddr>,
    /// Images whose containers run as a local program.
    pub images: BTreeMap<String, Program>,
    /// What runs for every other image: given `--port` and `--cert-dir`, it serves what the container would.
    pub stand_in: Program,
    /// How long after its change a Secret or ConfigMap reaches the pods that mount it, drawn anew each time.
    pub refresh_delay: RangeInclusive<Duration>,
    /// How long a pod waits for the images of its containers.
    pub pull_time: Duration,
    /// How much faster than written the waits of pods pass: probe delays and periods, `preStop` sleeps, restart
    /// back-off. Limits (timeouts, grace periods) stay.
    pub speed: f64,
    /// Where volumes and logs are written.
    pub directory: PathBuf,
}

/// A local program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The executable.
    pub path: PathBuf,
    /// Its arguments, ahead of the container's own.
    pub arguments: Vec<String>,
}

impl NodeOptions {
    /// A wait of a pod, at this node's speed.
    pub(crate) fn scaled(&self, wait: Duration) -> Duration {
        Duration::try_from_secs_f64(wait.as_secs_f64() / self.speed).unwrap_or(wait)
    }
}

impl Default for NodeOptions {
    fn default() -> Self {
        Self {
            name: "node".to_owned(),
            addresses: Network::new(Ipv4Addr::new(127, 244, 0, 0), 16),
            api_server: None,
            images: BTreeMap::new(),
            stand_in: Program {
                path: "sample-operator".into(),
                arguments: vec!["--stand-in".to_owned()],
            },
            // What a kubelet takes: its sync period of a minute, and the delay of its cache.
            refresh_delay: Duration::ZERO..=Duration::from_secs(90),
            pull_time: Duration::ZERO,
            speed: 1.0,
            directory: std::env::temp_dir().join(format!("windlass-node-{}", std::process::id())),
        }
    }
}

/// The file that holds what a container wrote to standard output and standard error, all its restarts after each other.
pub fn log_path(directory: &Path, namespace: &str, pod: &str, container: &str) -> PathBuf {
    directory
        .join("logs")
        .join(format!("{namespace}_{pod}_{container}.log"))
}
