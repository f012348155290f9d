//! A process that runs, until it has ended with all that it started.

use std::{
    os::unix::process::ExitStatusExt,
    process::{Command, ExitStatus, Stdio},
};

use tokio::{
    process::Child,
    time::{Instant, timeout_at},
};

/// A running process, and all that it has started.
///
/// Dropped, it is killed with its whole process group.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    group: Option<u32>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit {
    /// As a container runtime reports it: 128 and the signal's number where a signal ended it.
    pub(crate) code: i32,
}

impl Process {
    pub(super) fn new(child: Child) -> Self {
        let group = child.id();
        Self { child, group }
    }

    /// Waits for the end of the process, and ends what it leaves behind.
    pub(crate) async fn wait(&mut self) -> Exit {
        let exit = match self.child.wait().await {
            Ok(status) => Exit::from(status),
            Err(error) => {
                tracing::warn!(%error, "Cannot wait for a process");
                Exit { code: 255 }
            }
        };
        self.kill();
        exit
    }

    /// Asks the process to end with SIGTERM, and kills it at the deadline.
    pub(crate) async fn terminate(&mut self, deadline: Instant) -> Exit {
        if let Some(group) = self.group {
            signal("TERM", group);
        }
        match timeout_at(deadline, self.wait()).await {
            Ok(exit) => exit,
            Err(_) => {
                self.kill();
                self.wait().await
            }
        }
    }

    fn kill(&mut self) {
        if let Some(group) = self.group.take() {
            signal("KILL", group);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        let code = status
            .code()
            .or_else(|| status.signal().map(|signal| 128 + signal));
        Self {
            code: code.unwrap_or(255),
        }
    }
}

/// Sends a signal to a process group. That the group has ended already is no error.
fn signal(name: &str, group: u32) {
    let sent = Command::new("sh")
        .args(["-c", r#"kill -s "$0" -- "-$1""#, name, &group.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if let Err(error) = sent {
        tracing::warn!(%error, group, "Cannot send SIG{name}");
    }
}
