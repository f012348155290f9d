//! Runs `windlass` as the cluster's admin.

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

/// The `windlass` command of a test cluster.
#[derive(Clone, Debug)]
pub struct Command {
    /// The executable. Its first argument selects the program: see [`programs`].
    pub program: PathBuf,
    /// The admin's kubeconfig.
    pub kubeconfig: PathBuf,
    /// The working directory.
    pub folder: PathBuf,
}

/// The result of a command.
#[derive(Clone, Debug)]
pub struct CommandOutput {
    /// Whether the exit code is 0.
    pub succeeded: bool,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Command {
    /// Runs the command to its end, and calls `line` for each line of standard error.
    ///
    /// # Errors
    ///
    /// Fails if the command cannot be started or read from.
    pub async fn run(&self, arguments: &[&str], mut line: impl FnMut(&str)) -> anyhow::Result<CommandOutput> {
        let mut child = Process::new(&self.program)
            .arg(programs::WINDLASS)
            .args(arguments)
            .current_dir(&self.folder)
            .env("KUBECONFIG", &self.kubeconfig)
            // All servers of a test are on this machine.
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

    /// Runs the command, which must succeed, and returns its standard output.
    ///
    /// # Errors
    ///
    /// Fails if the exit code is not 0; the error contains the output.
    pub async fn succeed(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.run(arguments, |_| {}).await?;
        if !output.succeeded {
            bail!("{} failed:\n{}", typed(arguments), output.stderr);
        }
        Ok(output.stdout)
    }

    /// Runs the command, which must fail, and returns its standard error.
    ///
    /// # Errors
    ///
    /// Fails if the command succeeds.
    pub async fn fail(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.run(arguments, |_| {}).await?;
        if output.succeeded {
            bail!(
                "{} must fail, but succeeded:\n{}",
                typed(arguments),
                output.stdout
            );
        }
        Ok(output.stderr)
    }

    /// Runs the command with `--output json` and returns the output.
    ///
    /// # Errors
    ///
    /// Fails if the command fails or prints no JSON.
    pub async fn found(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        let arguments = [arguments, &["--output", "json"]].concat();
        let printed = self.succeed(&arguments).await?;
        serde_json::from_str(&printed).with_context(|| format!("{} printed {printed}", typed(&arguments)))
    }
}

/// The command line as a user types it.
pub fn typed(arguments: &[&str]) -> String {
    format!("windlass {}", arguments.join(" "))
}

/// Converts a path to an argument.
///
/// # Errors
///
/// Fails if the path is not UTF-8.
pub fn argument(path: &Path) -> anyhow::Result<&str> {
    path.to_str()
        .with_context(|| format!("{} is not UTF-8", path.display()))
}
