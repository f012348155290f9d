//! The operator as one or more processes that scenarios start, stop and kill.

use std::{
    convert::Infallible,
    fs::{self, File},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use anyhow::Context;
use kube::Client;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    process::{Child, Command},
};

use crate::{
    request::text,
    steps::{CERTIFICATES_LEASE, LEASE, PATIENCE, POLICIES_LEASE, get, succeed, until},
};

/// The namespace of the operator.
pub const NAMESPACE: &str = "windlass-system";

/// The image of the manifests under another name, as in a next release.
pub(crate) const NEXT_IMAGE: &str = "ghcr.io/windlass-dev/windlass:next";

/// The ServiceAccount of the operator.
pub(crate) const ACCOUNT: &str = "windlass";

/// The ServiceAccount of the certificate controllers.
pub(crate) const CERTIFICATES_ACCOUNT: &str = "windlass-certificates";

/// The time in which the operator must stop.
const SHUTDOWN: Duration = Duration::from_secs(20);

/// `USER_HZ`, which is 100 on every Linux.
const TICKS_A_SECOND: u64 = 100;

/// The pause before the operator is restarted.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// The ServiceAccount of the policy controllers.
pub(crate) const POLICIES_ACCOUNT: &str = "windlass-policies";

/// A set of controllers, named as in `--controllers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// `certificates`
    Certificates,
    /// `bundles`
    Bundles,
    /// `policies`
    Policies,
}

/// How to start the operator.
#[derive(Clone)]
pub struct OperatorProcess {
    /// The pod name, which distinguishes replicas.
    pub pod: String,
    /// A client of the cluster admin.
    pub client: Client,
    /// The executable.
    pub program: PathBuf,
    /// The first argument, which selects the operator: see [`crate::programs`].
    pub subcommand: &'static str,
    /// The operator's kubeconfig.
    pub kubeconfig: PathBuf,
    /// The value of `--bundle-dir`.
    pub bundle_dir: PathBuf,
    /// The log file; the operator appends to it.
    pub log: PathBuf,
    /// The controllers to run; `None` runs all.
    pub half: Option<Half>,
    /// Additional arguments of `windlass run`.
    pub arguments: Vec<String>,
    /// The value of `WINDLASS_LOG`; `None` for the default.
    pub log_filter: Option<String>,
    /// Additional environment variables.
    pub environment: Vec<(String, String)>,
}

/// A running operator.
pub struct Running {
    operator: OperatorProcess,
    child: Child,
}

impl OperatorProcess {
    /// Starts the operator.
    ///
    /// # Errors
    ///
    /// Fails if the process cannot be started.
    pub fn start(&self) -> anyhow::Result<Running> {
        let log = File::options()
            .append(true)
            .create(true)
            .open(&self.log)
            .with_context(|| format!("opening {}", self.log.display()))?;
        let mut command = Command::new(&self.program);
        command
            .arg(self.subcommand)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig);
        if matches!(self.half, None | Some(Half::Bundles)) {
            command.arg("--bundle-dir").arg(&self.bundle_dir);
        }
        if let Some(half) = self.half {
            command.arg(format!("--controllers={}", half.name()));
        }
        let child = command
            .arg("--bind")
            .arg("127.0.0.1:0")
            .args(&self.arguments)
            .env("POD_NAME", &self.pod)
            .envs(self.log_filter.iter().map(|filter| ("WINDLASS_LOG", filter)))
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .context("starting the operator")?;
        Ok(Running {
            operator: self.clone(),
            child,
        })
    }

    /// Runs the operator until the future is dropped, and restarts it when it exits, as a kubelet does. It
    /// exits when it was the leader and could not renew its Lease.
    ///
    /// # Errors
    ///
    /// Fails if the process cannot be started.
    pub async fn keep_running(&self) -> anyhow::Result<Infallible> {
        loop {
            let status = self.start()?.child.wait().await?;
            tracing::info!(%status, "The operator exited and is restarted");
            tokio::time::sleep(RESTART_PAUSE).await;
        }
    }

    /// Another replica of the operator, with its own log.
    #[must_use]
    pub fn replica(&self, pod: &str) -> Self {
        Self {
            pod: pod.to_owned(),
            log: self.log.with_file_name(format!("{pod}.log")),
            ..self.clone()
        }
    }

    /// The operator with this log filter.
    #[must_use]
    pub fn with_log_filter(&self, filter: &str) -> Self {
        Self {
            log_filter: Some(filter.to_owned()),
            ..self.clone()
        }
    }

    /// The operator with one set of controllers.
    #[must_use]
    pub fn with_half(&self, half: Half) -> Self {
        Self {
            half: Some(half),
            ..self.clone()
        }
    }

    /// The operator with another kubeconfig.
    #[must_use]
    pub fn with_kubeconfig(&self, kubeconfig: &Path) -> Self {
        Self {
            kubeconfig: kubeconfig.to_owned(),
            ..self.clone()
        }
    }
}

impl Half {
    fn name(self) -> &'static str {
        match self {
            Self::Certificates => "certificates",
            Self::Bundles => "bundles",
            Self::Policies => "policies",
        }
    }
}

impl Running {
    /// The resident memory in bytes (`VmRSS` in proc_pid_status(5)).
    ///
    /// # Errors
    ///
    /// Fails if the process has exited.
    pub fn memory(&self) -> anyhow::Result<u64> {
        self.resident("VmRSS")
    }

    /// The peak resident memory in bytes (`VmHWM`).
    ///
    /// # Errors
    ///
    /// Fails if the process has exited.
    pub fn peak_memory(&self) -> anyhow::Result<u64> {
        self.resident("VmHWM")
    }

    /// The CPU time so far (`utime` and `stime` in proc_pid_stat(5)).
    ///
    /// # Errors
    ///
    /// Fails if the process has exited.
    pub fn cpu_time(&self) -> anyhow::Result<Duration> {
        let stat = fs::read_to_string(self.proc_directory()?.join("stat"))?;
        // The process name, before the last parenthesis, may contain spaces.
        let (_, fields) = stat.rsplit_once(')').context("stat has no name")?;
        let ticks: Result<Vec<u64>, _> = fields
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(str::parse)
            .collect();
        Ok(Duration::from_millis(
            ticks?.iter().sum::<u64>() * 1000 / TICKS_A_SECOND,
        ))
    }

    fn resident(&self, name: &str) -> anyhow::Result<u64> {
        let status = fs::read_to_string(self.proc_directory()?.join("status"))?;
        let kibibytes: u64 = field(&status, name)
            .and_then(|value| value.strip_suffix(" kB")?.parse().ok())
            .context("the operator has exited")?;
        Ok(kibibytes * 1024)
    }

    fn proc_directory(&self) -> anyhow::Result<PathBuf> {
        let pid = self.child.id().context("the operator has exited")?;
        let parent = fs::read_link("/proc/self")?;
        let mut directories = fs::read_dir("/proc")?.filter_map(|entry| Some(entry.ok()?.path()));
        // If /proc belongs to another process namespace, only the last number is the one that we know.
        let directory = directories.find(|directory| {
            fs::read_to_string(directory.join("status")).is_ok_and(|status| {
                field(&status, "PPid").is_some_and(|number| Path::new(number) == parent)
                    && field(&status, "NSpid").and_then(|numbers| numbers.split_whitespace().next_back())
                        == Some(&pid.to_string())
            })
        });
        directory.context("the operator has exited")
    }

    /// Kills the process with `kill -9`, and releases its Lease so that the next process does not wait for it
    /// to expire. [`Running::crash`] keeps the Lease.
    ///
    /// # Errors
    ///
    /// Fails if the process cannot be waited for, or the Lease cannot be released.
    pub async fn kill(self) -> anyhow::Result<()> {
        let OperatorProcess {
            client, pod, half, ..
        } = self.operator.clone();
        let path = lease_of(half);
        self.crash().await?;
        let Some(lease) = get(&client, path).await? else {
            return Ok(());
        };
        if holds(&pod, &lease) {
            let freed = json!({"spec": {"holderIdentity": ""}});
            succeed(&client, "PATCH", path, Some(&freed)).await?;
        }
        Ok(())
    }

    /// Kills the process with `kill -9`.
    ///
    /// # Errors
    ///
    /// Fails if the process cannot be waited for.
    pub async fn crash(mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("killing the operator")
    }

    /// Whether this process holds the Lease.
    ///
    /// # Errors
    ///
    /// Fails if the Lease cannot be read.
    pub async fn leads(&self) -> anyhow::Result<bool> {
        let lease = get(&self.operator.client, lease_of(self.operator.half)).await?;
        let lease = lease.unwrap_or_default();
        Ok(holds(&self.operator.pod, &lease))
    }

    /// Returns the answer to a GET request: status line, headers and body.
    ///
    /// # Errors
    ///
    /// Fails if the operator does not answer.
    pub async fn ask(&self, path: &str) -> anyhow::Result<String> {
        let address = until("the operator serves", PATIENCE, async || {
            Ok(served_at(&self.operator.log).ok_or_else(|| "no address in its log".to_owned()))
        })
        .await?;
        let mut stream = TcpStream::connect(address).await?;
        stream
            .write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes())
            .await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    /// Waits until `/readyz` reports that all watches have synced.
    ///
    /// # Errors
    ///
    /// Fails on a timeout.
    pub async fn ready(&self) -> anyhow::Result<()> {
        until("the operator is ready", PATIENCE, async || {
            // The log may still contain the address of an earlier process.
            let answer = self
                .ask("/readyz")
                .await
                .unwrap_or_else(|error| error.to_string());
            Ok(if answer.contains(" 200 ") {
                Ok(())
            } else {
                Err(answer)
            })
        })
        .await
    }

    /// Sends `SIGSTOP`: the process pauses until [`Running::resume`].
    ///
    /// # Errors
    ///
    /// Fails if the signal cannot be sent.
    pub async fn pause(&self) -> anyhow::Result<()> {
        self.signal("STOP").await
    }

    /// Sends `SIGCONT`.
    ///
    /// # Errors
    ///
    /// Fails if the signal cannot be sent.
    pub async fn resume(&self) -> anyhow::Result<()> {
        self.signal("CONT").await
    }

    /// Waits until the process exits.
    ///
    /// # Errors
    ///
    /// Fails on a timeout.
    pub async fn ended(&mut self) -> anyhow::Result<ExitStatus> {
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        Ok(ended.context("the operator still runs")??)
    }

    /// Whether the process has exited, as it does when it was the leader and could not renew its Lease.
    ///
    /// # Errors
    ///
    /// Fails if the process state cannot be read.
    pub fn has_ended(&mut self) -> anyhow::Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Sends `SIGTERM` and waits until the process exits.
    ///
    /// # Errors
    ///
    /// Fails on a timeout or a non-zero exit code.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.signal("TERM").await?;
        let status = tokio::time::timeout(SHUTDOWN, self.child.wait())
            .await
            .context("the operator did not stop in time")??;
        anyhow::ensure!(status.success(), "the operator exited with {status}");
        Ok(())
    }

    async fn signal(&self, signal: &str) -> anyhow::Result<()> {
        let Some(pid) = self.child.id() else { return Ok(()) };
        let sent = Command::new("kill")
            .args(["-s", signal, &pid.to_string()])
            .status()
            .await?;
        anyhow::ensure!(sent.success(), "sending SIG{signal} to the operator failed");
        Ok(())
    }
}

/// The operator's user name.
pub(crate) fn user() -> String {
    user_of(ACCOUNT)
}

/// The user name of a ServiceAccount in the operator's namespace.
pub(crate) fn user_of(account: &str) -> String {
    format!("system:serviceaccount:{NAMESPACE}:{account}")
}

/// The Lease of a set of controllers, or of all in one process.
fn lease_of(half: Option<Half>) -> &'static str {
    match half {
        Some(Half::Certificates) => CERTIFICATES_LEASE,
        Some(Half::Policies) => POLICIES_LEASE,
        Some(Half::Bundles) | None => LEASE,
    }
}

/// Whether a process in `pod` holds the Lease.
fn holds(pod: &str, lease: &Value) -> bool {
    let holder = text(lease, "/spec/holderIdentity");
    holder.strip_prefix(pod).is_some_and(|rest| rest.starts_with('_'))
}

/// The last address in the log at which `/metrics` is served.
fn served_at(log: &Path) -> Option<SocketAddr> {
    let log = fs::read_to_string(log).ok()?;
    let line = log.lines().rfind(|line| line.contains("Serving /livez"))?;
    let line: Value = serde_json::from_str(line).ok()?;
    text(&line, "/address").parse().ok()
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.map(str::trim)
}
