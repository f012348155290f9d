//! How a test cluster is set up.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use windlass::commands::manifests;
use windlass_node::Program;

use crate::{operator, programs, sample, steps};

/// Set to the seconds for which every pod waits for its images: 20 in a full run.
const READY_AFTER: &str = "WINDLASS_E2E_READY_AFTER";

/// How a test cluster is set up.
#[derive(Clone, Debug)]
pub struct TestClusterOptions {
    /// The executable that is each program by its first argument: see [`programs`].
    pub program: PathBuf,
    /// The `windlass` program that is the operator; where there is none, the executable is.
    pub windlass: Option<PathBuf>,
    /// How long the node takes to bring a changed Secret into a pod, drawn anew each time.
    pub refresh_delay: std::ops::RangeInclusive<Duration>,
    /// How long the operator waits.
    pub waits: Waits,
    /// Programs of images, beside the sample operator's.
    pub images: Vec<(String, Program)>,
    /// More arguments of `windlass run`.
    pub operator_arguments: Vec<String>,
}

/// How long the operator waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Waits {
    /// No longer than this cluster needs: its node brings Secrets into pods within a known time, and its API server trusts
    /// a bundle at once.
    AsNeeded,
    /// As in any cluster, all multiplied by this factor.
    Scaled(f64),
}

// === impl TestClusterOptions ===

impl TestClusterOptions {
    /// A test cluster as most scenarios want it: Secrets reach their pods within a second.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            windlass: None,
            refresh_delay: Duration::ZERO..=Duration::from_secs(1),
            waits: Waits::AsNeeded,
            images: Vec::new(),
            operator_arguments: Vec::new(),
        }
    }

    /// The program that is the operator, and the first argument that makes it that.
    pub(super) fn operator(&self) -> (PathBuf, &'static str) {
        match &self.windlass {
            Some(windlass) => (windlass.clone(), programs::RUN),
            None => (self.program.clone(), programs::OPERATOR),
        }
    }

    /// What makes the operator wait as long as it is to.
    pub(super) fn arguments(&self) -> Vec<String> {
        let (scale, reload, disarm, stored, look) = match self.waits {
            Waits::AsNeeded => {
                // The sample operator looks at its files five times a second.
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

    /// How the node is set up, whose files go below `directory`.
    ///
    /// # Errors
    ///
    /// When [`ready_after`] makes no sense.
    pub(super) fn node(&self, directory: &Path) -> anyhow::Result<windlass_node::NodeOptions> {
        let program = |arguments: &[&str]| Program {
            path: self.program.clone(),
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
        };
        let mut images: BTreeMap<String, Program> = self.images.iter().cloned().collect();
        // A release knows the versions of its time.
        for (release, versions) in [("v1", "v1beta1,v1"), ("v2", "v1beta1,v1,v2"), ("v3", "v2")] {
            for image in [sample::IMAGE, sample::MIRROR] {
                images.insert(
                    format!("{image}:{release}"),
                    program(&[programs::SAMPLE_OPERATOR, "--versions", versions]),
                );
            }
        }
        // By another name than the stand-in has: it finds its mounts where a cluster has them.
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

/// How long pods take to become ready, beside the time that their own programs take.
///
/// # Errors
///
/// When [`READY_AFTER`] says something else than a number.
pub(crate) fn ready_after() -> anyhow::Result<Duration> {
    steps::duration_in(READY_AFTER, Duration::ZERO)
}
