//! The operator as a process of its own: started, killed, started again.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::Context;
use tokio::process::{Child, Command};

use crate::programs;

/// How long the operator may take to end when asked to.
const SHUTDOWN: Duration = Duration::from_secs(20);

/// How to start the operator.
#[derive(Clone, Debug)]
pub struct Operator {
    /// The executable, which is the operator by its first argument: see [`programs`].
    pub program: PathBuf,
    /// Its kubeconfig.
    pub kubeconfig: PathBuf,
    /// Its `--bundle-dir`.
    pub bundle_dir: PathBuf,
    /// Its log, appended to.
    pub log: PathBuf,
    /// More arguments of `windlass run`.
    pub arguments: Vec<String>,
    /// What it logs, as `WINDLASS_LOG` says; its default where there is none.
    pub log_filter: Option<String>,
}

/// The operator, running.
#[derive(Debug)]
pub struct Running {
    child: Child,
}

// === impl Operator ===

impl Operator {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// When the process cannot be started.
    pub fn start(&self) -> anyhow::Result<Running> {
        let log = File::options()
            .append(true)
            .create(true)
            .open(&self.log)
            .with_context(|| format!("opening {}", self.log.display()))?;
        let child = Command::new(&self.program)
            .arg(programs::OPERATOR)
            .arg("run")
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .arg("--bundle-dir")
            .arg(&self.bundle_dir)
            .arg("--bind")
            .arg("127.0.0.1:0")
            .args(&self.arguments)
            .envs(self.log_filter.iter().map(|filter| ("WINDLASS_LOG", filter)))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .context("starting the operator")?;
        Ok(Running { child })
    }

    /// The same operator, logging what `filter` says.
    #[must_use]
    pub fn with_log_filter(&self, filter: &str) -> Self {
        Self {
            log_filter: Some(filter.to_owned()),
            ..self.clone()
        }
    }

    /// The same operator with another kubeconfig.
    #[must_use]
    pub fn with_kubeconfig(&self, kubeconfig: &Path) -> Self {
        Self {
            kubeconfig: kubeconfig.to_owned(),
            ..self.clone()
        }
    }
}

// === impl Running ===

impl Running {
    /// `kill -9`.
    ///
    /// # Errors
    ///
    /// When the process cannot be waited for.
    pub async fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("killing the operator")
    }

    /// Asks it to end, and waits for that.
    ///
    /// # Errors
    ///
    /// When it does not end in time or ends with an error.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        let Some(pid) = self.child.id() else { return Ok(()) };
        Command::new("kill")
            .arg(pid.to_string())
            .status()
            .await
            .context("asking the operator to end")?;
        let status = tokio::time::timeout(SHUTDOWN, self.child.wait())
            .await
            .context("the operator did not end when asked to")??;
        anyhow::ensure!(status.success(), "the operator ended with {status}");
        Ok(())
    }
}
