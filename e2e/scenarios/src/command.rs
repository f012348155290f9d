//! The `windlass` command, as the cluster's admin types it.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, bail};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::Command as Process,
};

use crate::programs;

/// How to run the command.
#[derive(Clone, Debug)]
pub struct Command {
    /// The executable, which is the command by its first argument: see [`programs`].
    pub program: PathBuf,
    /// The admin's kubeconfig.
    pub kubeconfig: PathBuf,
    /// Where it is typed.
    pub folder: PathBuf,
}

/// What became of it.
#[derive(Clone, Debug)]
pub struct CommandOutput {
    /// Whether it exited with 0.
    pub succeeded: bool,
    /// What it printed on standard output.
    pub stdout: String,
    /// What it printed on standard error.
    pub stderr: String,
}

// === impl Command ===

impl Command {
    /// Runs it with these arguments to its end; `line` gets each line of standard error as it comes.
    ///
    /// # Errors
    ///
    /// When it cannot be started or read from.
    pub async fn run(&self, arguments: &[&str], mut line: impl FnMut(&str)) -> anyhow::Result<CommandOutput> {
        let mut child = Process::new(&self.program)
            .arg(programs::WINDLASS)
            .args(arguments)
            .current_dir(&self.folder)
            .env("KUBECONFIG", &self.kubeconfig)
            // Every server of a test is on this machine.
            .env("NO_PROXY", "127.0.0.1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("starting {}", typed(arguments)))?;
        let mut output = child.stdout.take().context("no standard output")?;
        let mut lines = BufReader::new(child.stderr.take().context("no standard error")?).lines();
        let printed = async {
            let mut text = String::new();
            output.read_to_string(&mut text).await.map(|_| text)
        };
        let said = async {
            let mut text = String::new();
            while let Some(next) = lines.next_line().await? {
                line(&next);
                text.push_str(&next);
                text.push('\n');
            }
            std::io::Result::Ok(text)
        };
        let (stdout, stderr) = tokio::try_join!(printed, said)?;
        let status = child.wait().await?;
        Ok(CommandOutput {
            succeeded: status.success(),
            stdout,
            stderr,
        })
    }

    /// Runs it; it must succeed. What it printed on standard output.
    ///
    /// # Errors
    ///
    /// When it exits with another code than 0; what it printed is in the error.
    pub async fn succeed(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.run(arguments, |_| {}).await?;
        if !output.succeeded {
            bail!("{} has failed:\n{}", typed(arguments), output.stderr);
        }
        Ok(output.stdout)
    }

    /// Runs it; it must fail. What it printed on standard error.
    ///
    /// # Errors
    ///
    /// When it succeeds.
    pub async fn fail(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.run(arguments, |_| {}).await?;
        if output.succeeded {
            bail!("{} should have failed:\n{}", typed(arguments), output.stdout);
        }
        Ok(output.stderr)
    }

    /// Runs it with `--output json`. What it found.
    ///
    /// # Errors
    ///
    /// When it fails or prints no JSON.
    pub async fn found(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        let arguments = [arguments, &["--output", "json"]].concat();
        let printed = self.succeed(&arguments).await?;
        serde_json::from_str(&printed).with_context(|| format!("{} printed {printed}", typed(&arguments)))
    }
}

/// A command line as people type it.
pub fn typed(arguments: &[&str]) -> String {
    format!("windlass {}", arguments.join(" "))
}

/// A path as an argument.
///
/// # Errors
///
/// When it is not UTF-8.
pub fn argument(path: &Path) -> anyhow::Result<&str> {
    path.to_str()
        .with_context(|| format!("{} is not UTF-8", path.display()))
}
