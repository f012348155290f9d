//! The operator as a process of its own, or as several: started, stopped, killed, started again.

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

/// The image of the manifests by another name, as that of the next release.
pub(crate) const NEXT_IMAGE: &str = "ghcr.io/windlass-dev/windlass:next";

/// The ServiceAccount of the operator.
pub(crate) const ACCOUNT: &str = "windlass";

/// The ServiceAccount of the half of certificates.
pub(crate) const CERTIFICATES_ACCOUNT: &str = "windlass-certificates";

/// How long the operator may take to end when asked to.
const SHUTDOWN: Duration = Duration::from_secs(20);

/// `USER_HZ`, which is 100 wherever Linux runs.
const TICKS_A_SECOND: u64 = 100;

/// How long after its end the operator is started again.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// The ServiceAccount of the part of policies.
pub(crate) const POLICIES_ACCOUNT: &str = "windlass-policies";

/// A part of the controllers, by what `--controllers` calls it.
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
    /// Its pod, by which one of several replicas is told from the others.
    pub pod: String,
    /// The cluster admin.
    pub client: Client,
    /// The executable.
    pub program: PathBuf,
    /// Its first argument, which makes it the operator: see [`crate::programs`].
    pub subcommand: &'static str,
    /// Its kubeconfig.
    pub kubeconfig: PathBuf,
    /// Its `--bundle-dir`.
    pub bundle_dir: PathBuf,
    /// Its log, appended to.
    pub log: PathBuf,
    /// The half of the controllers that it runs; all where there is none.
    pub half: Option<Half>,
    /// More arguments of `windlass run`.
    pub arguments: Vec<String>,
    /// What it logs, as `WINDLASS_LOG` says; its default where there is none.
    pub log_filter: Option<String>,
    /// More variables of its environment.
    pub environment: Vec<(String, String)>,
}

/// The operator, running.
pub struct Running {
    operator: OperatorProcess,
    child: Child,
}

// === impl Operator ===

impl OperatorProcess {
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

    /// Runs it for as long as this is waited for: starts it again whenever it ends by itself, as a kubelet does. It ends
    /// when it has led and could not renew its Lease.
    ///
    /// # Errors
    ///
    /// When the process cannot be started.
    pub async fn keep_running(&self) -> anyhow::Result<Infallible> {
        loop {
            let status = self.start()?.child.wait().await?;
            tracing::info!(%status, "The operator has ended, and is started again");
            tokio::time::sleep(RESTART_PAUSE).await;
        }
    }

    /// Another replica of the same operator, with a log of its own.
    #[must_use]
    pub fn replica(&self, pod: &str) -> Self {
        Self {
            pod: pod.to_owned(),
            log: self.log.with_file_name(format!("{pod}.log")),
            ..self.clone()
        }
    }

    /// The same operator, logging what `filter` says.
    #[must_use]
    pub fn with_log_filter(&self, filter: &str) -> Self {
        Self {
            log_filter: Some(filter.to_owned()),
            ..self.clone()
        }
    }

    /// The same operator with one half of the controllers only.
    #[must_use]
    pub fn with_half(&self, half: Half) -> Self {
        Self {
            half: Some(half),
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

// === impl Half ===

impl Half {
    fn name(self) -> &'static str {
        match self {
            Self::Certificates => "certificates",
            Self::Bundles => "bundles",
            Self::Policies => "policies",
        }
    }
}

// === impl Running ===

impl Running {
    /// How much memory it has, in bytes (`VmRSS` in proc_pid_status(5)).
    ///
    /// # Errors
    ///
    /// When it has ended.
    pub fn memory(&self) -> anyhow::Result<u64> {
        self.resident("VmRSS")
    }

    /// How much it had at the most, in bytes (`VmHWM`).
    ///
    /// # Errors
    ///
    /// When it has ended.
    pub fn peak_memory(&self) -> anyhow::Result<u64> {
        self.resident("VmHWM")
    }

    /// How long it has computed so far (`utime` and `stime` in proc_pid_stat(5)).
    ///
    /// # Errors
    ///
    /// When it has ended.
    pub fn cpu_time(&self) -> anyhow::Result<Duration> {
        let stat = fs::read_to_string(self.proc_directory()?.join("stat"))?;
        // The name before the last parenthesis may have spaces in it.
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
            .context("the operator has ended")?;
        Ok(kibibytes * 1024)
    }

    fn proc_directory(&self) -> anyhow::Result<PathBuf> {
        let pid = self.child.id().context("the operator has ended")?;
        let parent = fs::read_link("/proc/self")?;
        let mut directories = fs::read_dir("/proc")?.filter_map(|entry| Some(entry.ok()?.path()));
        // Where /proc is that of another process namespace, only the last of its numbers is the one that we know.
        let directory = directories.find(|directory| {
            fs::read_to_string(directory.join("status")).is_ok_and(|status| {
                field(&status, "PPid").is_some_and(|number| Path::new(number) == parent)
                    && field(&status, "NSpid").and_then(|numbers| numbers.split_whitespace().next_back())
                        == Some(&pid.to_string())
            })
        });
        directory.context("the operator has ended")
    }

    /// `kill -9`, and frees the Lease where it held it: the next life need not wait until a Lease ends whose holder is
    /// known to be dead. [`Running::crash`] does not.
    ///
    /// # Errors
    ///
    /// When the process cannot be waited for, or the Lease cannot be freed.
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

    /// `kill -9`, and nothing more.
    ///
    /// # Errors
    ///
    /// When the process cannot be waited for.
    pub async fn crash(mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("killing the operator")
    }

    /// Whether it holds the Lease.
    ///
    /// # Errors
    ///
    /// When the API server cannot be asked.
    pub async fn leads(&self) -> anyhow::Result<bool> {
        let lease = get(&self.operator.client, lease_of(self.operator.half)).await?;
        let lease = lease.unwrap_or_default();
        Ok(holds(&self.operator.pod, &lease))
    }

    /// What it answers to a GET request: the status line, the headers, the body.
    ///
    /// # Errors
    ///
    /// When it does not serve.
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

    /// Waits until it has seen everything, which `/readyz` says.
    ///
    /// # Errors
    ///
    /// When it does not say so in time.
    pub async fn ready(&self) -> anyhow::Result<()> {
        until("the operator is ready", PATIENCE, async || {
            // The log may still name the address of a process before.
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

    /// `SIGSTOP`: it stands still until [`Running::resume`].
    ///
    /// # Errors
    ///
    /// When the signal cannot be sent.
    pub async fn pause(&self) -> anyhow::Result<()> {
        self.signal("STOP").await
    }

    /// `SIGCONT`.
    ///
    /// # Errors
    ///
    /// When the signal cannot be sent.
    pub async fn resume(&self) -> anyhow::Result<()> {
        self.signal("CONT").await
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    ///
    /// When it does not.
    pub async fn ended(&mut self) -> anyhow::Result<ExitStatus> {
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        Ok(ended.context("the operator goes on")??)
    }

    /// Whether it has ended by itself, as it does when it has led and could not renew its Lease.
    ///
    /// # Errors
    ///
    /// When the process cannot be asked.
    pub fn has_ended(&mut self) -> anyhow::Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Asks it to end, and waits for that.
    ///
    /// # Errors
    ///
    /// When it does not end in time or ends with an error.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.signal("TERM").await?;
        let status = tokio::time::timeout(SHUTDOWN, self.child.wait())
            .await
            .context("the operator did not end when asked to")??;
        anyhow::ensure!(status.success(), "the operator ended with {status}");
        Ok(())
    }

    async fn signal(&self, signal: &str) -> anyhow::Result<()> {
        let Some(pid) = self.child.id() else { return Ok(()) };
        let sent = Command::new("kill")
            .args(["-s", signal, &pid.to_string()])
            .status()
            .await?;
        anyhow::ensure!(sent.success(), "the operator did not get SIG{signal}");
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

/// The Lease of a half, or of both in one process.
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

/// The address at which a log says last that `/metrics` is served.
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
