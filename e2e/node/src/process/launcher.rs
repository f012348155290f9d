//! How a container becomes a process on this machine.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::Command;

use super::{child::Process, mounts, spawner::Spawner};
use crate::{NodeOptions, environment::Variables};

/// Variables of the node that every process gets too. `RUST_BACKTRACE` is none of them: the last words of a process that
/// fails are to be its error.
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "RUST_LOG"];

/// A process cannot be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchError {
    /// Its log file cannot be opened.
    #[error("cannot open the log {}: {source}", path.display())]
    Log { path: PathBuf, source: io::Error },
    /// Its mounts cannot be arranged.
    #[error("cannot arrange the mounts of {}: {source}", program.display())]
    Mounts { program: PathBuf, source: io::Error },
    /// The program cannot be started.
    #[error("cannot start {}: {source}", program.display())]
    Start { program: PathBuf, source: io::Error },
}

/// What to start.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    pub(crate) program: &'a Path,
    pub(crate) arguments: Vec<String>,
    pub(crate) variables: Variables,
    /// Mount paths and what is there, for a program that finds them by itself; none where it reads `WINDLASS_MOUNTS`.
    pub(crate) mounts: Option<&'a BTreeMap<String, PathBuf>>,
    /// Where its output goes; nowhere without one.
    pub(crate) log: Option<&'a Path>,
}

/// Starts processes, as well as this machine can. They end with it where processes can die with their parent.
#[derive(Debug)]
pub(crate) struct Launcher {
    spawner: Spawner,
    directory: PathBuf,
    /// `setpriv` is there: processes die with the node even when it is killed.
    dies_with_parent: bool,
    /// Mount namespaces are allowed: programs find their mounts where they were built to look.
    mount_namespaces: bool,
}

impl Launcher {
    /// Finds out what this machine can do.
    pub(crate) fn new(options: &NodeOptions) -> io::Result<Self> {
        let dies_with_parent = works("setpriv", &["--pdeathsig", "KILL", "true"]);
        if !dies_with_parent {
            tracing::warn!(
                "setpriv --pdeathsig does not work here: processes of pods survive a node that is killed"
            );
        }
        let mount_namespaces = works("unshare", &[&mounts::NAMESPACES[..], &["true"]].concat());
        if !mount_namespaces {
            tracing::warn!(
                "User namespaces do not work here: programs find their mounts by WINDLASS_MOUNTS only, not at the mount paths"
            );
        }
        let directory = fs::canonicalize(&options.directory)?;
        Ok(Self {
            spawner: Spawner::start()?,
            directory,
            dies_with_parent,
            mount_namespaces,
        })
    }

    /// Starts a process in a group of its own.
    pub(crate) async fn start(&self, launch: Launch<'_>) -> Result<Process, LaunchError> {
        let program = launch.program;
        let words = self.words(&launch).map_err(|source| LaunchError::Mounts {
            program: program.to_owned(),
            source,
        })?;
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .env_clear()
            .process_group(0)
            .kill_on_drop(true)
            .stdin(Stdio::null());
        command.envs(
            INHERITED
                .iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        );
        command.envs(&launch.variables);
        match launch.log {
            None => command.stdout(Stdio::null()).stderr(Stdio::null()),
            Some(path) => {
                let error = |source| LaunchError::Log {
                    path: path.to_owned(),
                    source,
                };
                let log = fs::OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(path)
                    .map_err(error)?;
                command.stdout(log.try_clone().map_err(error)?).stderr(log)
            }
        };
        let child = self.spawner.spawn(command).await;
        let child = child.map_err(|source| LaunchError::Start {
            program: program.to_owned(),
            source,
        })?;
        Ok(Process::new(child))
    }

    /// Whether programs find their mounts where they were built to look.
    #[cfg(test)]
    pub(super) fn mount_namespaces(&self) -> bool {
        self.mount_namespaces
    }

    /// The command line: the program behind what prepares the process for it.
    fn words(&self, launch: &Launch<'_>) -> io::Result<Vec<String>> {
        let mut words = Vec::new();
        if let Some(mounts) = launch
            .mounts
            .filter(|mounts| self.mount_namespaces && !mounts.is_empty())
        {
            let program = which(launch.program)?;
            let keep = [self.directory.as_path(), program.parent().unwrap_or(&program)];
            words.extend(mounts::enter(mounts, &keep)?);
        }
        // Innermost: a new user namespace would clear the parent-death signal.
        if self.dies_with_parent {
            words.extend(["setpriv", "--pdeathsig", "KILL", "--"].map(str::to_owned));
        }
        words.push(launch.program.display().to_string());
        words.extend(launch.arguments.iter().cloned());
        Ok(words)
    }
}

/// The file of a program, found as a shell finds it.
fn which(program: &Path) -> io::Result<PathBuf> {
    if program.components().count() > 1 {
        return fs::canonicalize(program);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
        .ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("{} is not in PATH", program.display()),
            )
        })
}

fn works(program: &str, arguments: &[&str]) -> bool {
    let mut command = std::process::Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
