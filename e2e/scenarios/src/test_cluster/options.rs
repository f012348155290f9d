//! The options of a test cluster.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use windlass::commands::manifests;
use windlass_node::Program;

use crate::{cluster::BackingCluster, operator, programs, sample, steps};

/// The variable that names a built `windlass`, such as a release.
const WINDLASS: &str = "E2E_WINDLASS";

/// The variable with the seconds that each pod needs for its images: 20 in a full run.
const READY_AFTER: &str = "WINDLASS_E2E_READY_AFTER";

/// The variable with the seconds after which each pod of a real node has a changed Secret.
const SECRET_DELAY: &str = "E2E_SECRET_DELAY";

/// The delay of a kubelet with its default configuration: it updates the Secrets of a pod every minute, and at
/// most half a minute later.
const KUBELET_DELAY: Duration = Duration::from_secs(90);

/// The options of a test cluster.
#[derive(Clone, Debug)]
pub struct TestClusterOptions {
    /// The executable whose first argument selects the program: see [`programs`].
    pub program: PathBuf,
    /// The `windlass` program that runs as the operator, by default the one that `E2E_WINDLASS` names; `None` uses `program`.
    pub windlass: Option<PathBuf>,
    /// The range of the delay with which the node updates a mounted Secret.
    pub refresh_delay: std::ops::RangeInclusive<Duration>,
    /// How long the operator waits.
    pub waits: Waits,
    /// Programs of images, in addition to the sample operator's.
    pub images: Vec<(String, Program)>,
    /// Additional arguments of `windlass run`.
    pub operator_arguments: Vec<String>,
}

/// How long the operator waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Waits {
    /// As short as this cluster permits: its node updates Secrets within a known time, and its API server
    /// uses a new bundle immediately.
    AsNeeded,
    /// As in production, multiplied by this factor.
    Scaled(f64),
}

impl TestClusterOptions {
    /// The usual options: pods see changed Secrets within a second.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            windlass: std::env::var_os(WINDLASS).map(PathBuf::from),
            refresh_delay: Duration::ZERO..=Duration::from_secs(1),
            waits: Waits::AsNeeded,
            images: Vec::new(),
            operator_arguments: Vec::new(),
        }
    }

    /// The usual options for a cluster: `E2E_SECRET_DELAY` has the delay of its own nodes.
    ///
    /// # Errors
    ///
    /// Fails if that is not a number.
    pub fn for_cluster(program: impl Into<PathBuf>, cluster: &BackingCluster) -> anyhow::Result<Self> {
        let mut options = Self::new(program);
        if cluster.has_nodes() {
            options.refresh_delay = Duration::ZERO..=steps::duration_in(SECRET_DELAY, KUBELET_DELAY)?;
        }
        Ok(options)
    }

    /// The program of the operator, and the first argument that selects it.
    pub(super) fn operator(&self) -> (PathBuf, &'static str) {
        match &self.windlass {
            Some(windlass) => (windlass.clone(), programs::RUN),
            None => (self.program.clone(), programs::OPERATOR),
        }
    }

    /// The arguments that set the operator's waits.
    pub(super) fn arguments(&self) -> Vec<String> {
        let (scale, reload, disarm, stored, look) = match self.waits {
            Waits::AsNeeded => {
                // The sample operator reads its files five times per second.
                let reload = *self.refresh_delay.end() + Duration::from_secs(2);
                (
                    0.05,
                    Some(reload),
                    Duration::from_secs(1),
                    Duration::from_secs(1),
                    Duration::from_millis(500),
                )
            }
            Waits::Scaled(factor) => {
                let scaled = |seconds| Duration::from_secs(seconds).mul_f64(factor);
                (factor, None, scaled(10), scaled(70), scaled(5))
            }
        };
        let milliseconds = |wait: Duration| format!("{}ms", wait.as_millis());
        let waits = [
            ("--time-scale", Some(scale.to_string())),
            ("--reload-delay", reload.map(milliseconds)),
            ("--disarm-delay", Some(milliseconds(disarm))),
            ("--storage-delay", Some(milliseconds(stored))),
            ("--recheck-interval", Some(milliseconds(look))),
        ];
        let given = waits
            .into_iter()
            .filter_map(|(name, value)| Some([name.to_owned(), value?]));
        given
            .flatten()
            .chain(self.operator_arguments.iter().cloned())
            .collect()
    }

    /// The options of the node; its files are below `directory`.
    ///
    /// # Errors
    ///
    /// Fails if [`ready_after`] fails.
    pub(super) fn node(&self, directory: &Path) -> anyhow::Result<windlass_node::NodeOptions> {
        let program = |arguments: &[&str]| Program {
            path: self.program.clone(),
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
        };
        let mut images: BTreeMap<String, Program> = self.images.iter().cloned().collect();
        // A release knows the Kubernetes versions of its time.
        for (release, versions) in [("v1", "v1beta1,v1"), ("v2", "v1beta1,v1,v2"), ("v3", "v2")] {
            for image in [sample::IMAGE, sample::MIRROR] {
                images.insert(
                    format!("{image}:{release}"),
                    program(&[programs::SAMPLE_OPERATOR, "--versions", versions]),
                );
            }
        }
        // The name differs from the stand-in's: the program finds its mounts where a cluster has them.
        let windlass = directory.join("windlass");
        std::os::unix::fs::symlink(self.windlass.as_ref().unwrap_or(&self.program), &windlass)?;
        for image in [manifests::image(), operator::NEXT_IMAGE.to_owned()] {
            let program = Program {
                path: windlass.clone(),
                arguments: self
                    .windlass
                    .is_none()
                    .then(|| programs::WINDLASS.to_owned())
                    .into_iter()
                    .collect(),
            };
            images.insert(image, program);
        }
        if let Some(path) = std::env::var_os(sample::CONTROLLER_RUNTIME_PROGRAM) {
            let server = Program {
                path: path.into(),
                arguments: Vec::new(),
            };
            for (release, versions) in [("sample.v1", "v1beta1,v1"), ("sample.v2", "v1beta1,v1,v2")] {
                let mut server = server.clone();
                server.arguments = [
                    "--versions",
                    versions,
                    "--mutate-path=/mutate",
                    "--validate-path=/validate",
                ]
                .map(str::to_owned)
                .into();
                images.insert(format!("{}:{release}", sample::CONTROLLER_RUNTIME_IMAGE), server);
            }
            images.insert(format!("{}:v2", sample::CONTROLLER_RUNTIME_IMAGE), server);
        }
        Ok(windlass_node::NodeOptions {
            images,
            stand_in: program(&[programs::SAMPLE_OPERATOR, "--stand-in"]),
            refresh_delay: self.refresh_delay.clone(),
            pull_time: ready_after()?,
            directory: directory.join("node"),
            ..windlass_node::NodeOptions::default()
        })
    }
}

/// The time that pods need to become ready, in addition to that of their programs.
///
/// # Errors
///
/// Fails if [`READY_AFTER`] is not a number.
pub(crate) fn ready_after() -> anyhow::Result<Duration> {
    steps::duration_in(READY_AFTER, Duration::ZERO)
}
