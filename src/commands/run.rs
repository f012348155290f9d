//! `windlass run`: the operator.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context as _, anyhow};
use clap::{ArgAction, Parser};
use kube::Client;
use tokio::{signal::unix::SignalKind, task::JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::{error, info};
use windlass_cluster::{
    Cluster, Index, SystemClock,
    apply::Applier,
    events::Events,
    lease::{Candidate, Elector, Leadership, fenced},
    prober::Prober,
    telemetry::{LogFormat, Metrics, chain, start_logs},
    watches::Watches,
};
use windlass_object::GoDuration;
use windlass_operator::{
    Context,
    admission::{self, Admission},
    annotated_service, bundle_deployment, direct_injection,
    health::{self, Health},
    serving_certificate,
};

use crate::commands::{
    connect::{client, configuration},
    leader_election::LeaderElection,
};

/// Runs the operator.
#[derive(Clone, Debug, Parser)]
pub struct Args {
    /// The kubeconfig of the cluster. Without it: $KUBECONFIG, ~/.kube/config, or the pod's ServiceAccount.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The folder below which BundleDeployments may name directories.
    #[arg(long, value_name = "DIR")]
    pub bundle_dir: Option<PathBuf>,
    /// The operator's own namespace: CA keys are kept in it, and ConfigMaps with bundles are read from it.
    #[arg(
        long,
        env = "WINDLASS_NAMESPACE",
        default_value = "windlass-system",
        value_name = "NAMESPACE"
    )]
    pub namespace: String,
    /// How one replica is chosen to lead.
    #[command(flatten)]
    pub election: LeaderElection,
    /// Where /livez, /readyz and /metrics are served.
    #[arg(long, default_value = "0.0.0.0:8080", value_name = "ADDRESS")]
    pub bind: SocketAddr,
    /// Where the guard answers AdmissionReviews, over TLS. Without it, nobody is kept from changing the conversion of a
    /// CustomResourceDefinition that a BundleDeployment claims; it is put right afterwards.
    #[arg(long, value_name = "ADDRESS")]
    pub admission_bind: Option<SocketAddr>,
    /// How log lines look. $WINDLASS_LOG filters them, for example windlass=debug.
    #[arg(long, value_enum, default_value = "json")]
    pub log_format: LogFormat,
    /// How long a request to the API server may take, with all its retries.
    #[arg(long, default_value = "30s", hide = true)]
    pub request_timeout: GoDuration,
    /// How long an endpoint may take to answer a probe.
    #[arg(long, default_value = "5s", hide = true)]
    pub probe_timeout: GoDuration,
    /// How long what was disarmed is still served, until every API server has heard of it.
    #[arg(long, default_value = "10s", hide = true)]
    pub disarm_delay: GoDuration,
    /// How long an object may still be stored in the version before, after a storage version has moved.
    #[arg(long, default_value = "70s", hide = true)]
    pub storage_delay: GoDuration,
    /// How often a gate is looked at that no watch opens.
    #[arg(long, default_value = "5s", hide = true)]
    pub look_again: GoDuration,
    /// Multiplies every wait of a rotation: for clusters that are faster or slower than a real one.
    #[arg(long, default_value = "1", value_parser = factor, hide = true)]
    pub time_scale: f64,
    /// How long servers take to read a changed Secret at the most; not scaled.
    #[arg(long, hide = true)]
    pub reload_delay: Option<GoDuration>,
    /// Whether /livez, /readyz and /metrics are served.
    #[arg(long, default_value_t = true, action = ArgAction::Set, hide = true)]
    pub serve: bool,
}

/// Tasks, each with its name.
type Tasks = JoinSet<(&'static str, anyhow::Result<()>)>;

/// How long the tasks have to finish what they are doing at shutdown.
const GRACE: Duration = Duration::from_secs(20);

// === impl Args ===

impl Args {
    /// Runs until SIGTERM or SIGINT.
    ///
    /// # Errors
    ///
    /// When the cluster cannot be reached, this process has led and leads no longer, or a task has ended that should not
    /// have.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        start_logs(self.log_format);
        self.election.timing()?;
        let mut config = configuration(self.kubeconfig.as_deref()).await?;
        config.default_retry = false;
        let client = client(config)?;
        let shutdown = CancellationToken::new();
        let mut terminate =
            tokio::signal::unix::signal(SignalKind::terminate()).context("cannot listen to SIGTERM")?;
        let mut interrupt =
            tokio::signal::unix::signal(SignalKind::interrupt()).context("cannot listen to SIGINT")?;
        let stop = shutdown.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            info!("Shutting down");
            stop.cancel();
        });
        self.operate(client, shutdown).await?;
        Ok(ExitCode::SUCCESS)
    }

    /// Runs the operator through `client` until `shutdown`. The client must not try again by itself:
    /// [`kube::Config::default_retry`].
    ///
    /// # Errors
    ///
    /// When this process has led and leads no longer, or a task has ended that should not have; the others are stopped
    /// then.
    pub async fn operate(self, client: Client, shutdown: CancellationToken) -> anyhow::Result<()> {
        let (elector, leadership) = match self.election.timing()? {
            Some(timing) => {
                let candidate = Candidate::new(self.election.identity(), timing);
                let cluster = Cluster::new(client.clone(), timing.renew_deadline);
                let (elector, leadership) = Elector::new(cluster, &self.namespace, candidate);
                (Some(elector), leadership)
            }
            None => (None, Leadership::always()),
        };
        let cluster = Cluster::new(
            fenced(client.clone(), leadership.clone()),
            self.request_timeout.0.unsigned_abs(),
        );
        let events = Events::new(cluster.clone(), std::env::var("POD_NAME").ok());
        let stop = shutdown.child_token();
        let released = CancellationToken::new();
        let elected = async {
            let Some(elector) = elector else { return Ok(()) };
            let result = elector.run(events.clone(), released.clone()).await;
            if let Err(lost) = &result {
                error!(
                    error = chain(lost),
                    "Lost the leadership; ending, to be started again"
                );
            }
            stop.cancel();
            result
        };
        let worked = async {
            let result = self
                .work(client, cluster, leadership, events.clone(), stop.clone())
                .await;
            // Only now: until here writes may be under way, and nobody else may lead.
            released.cancel();
            result
        };
        let (elected, worked) = tokio::join!(elected, worked);
        elected?;
        worked
    }

    /// Runs everything that reads and writes through `cluster`, until `stop`. Through `client`, one that stands by can
    /// ask, too.
    async fn work(
        self,
        client: Client,
        cluster: Cluster,
        leadership: Leadership,
        events: Events,
        stop: CancellationToken,
    ) -> anyhow::Result<()> {
        let bundle_directory = self
            .bundle_dir
            .map(|directory| {
                directory
                    .canonicalize()
                    .with_context(|| format!("cannot read the --bundle-dir {}", directory.display()))
            })
            .transpose()?;
        let index = Arc::new(Index::new());
        let (watches, watching) = Watches::new(cluster.clone(), index.clone());
        let metrics = Arc::new(Metrics::new());
        let sizes = index.clone();
        metrics.report_sizes(move || {
            let sizes = sizes.sizes().into_iter();
            sizes.map(|(kind, size)| (kind.to_string(), size)).collect()
        });
        let leads = leadership.clone();
        metrics.report_leader(move || leads.check().is_ok());
        let admission = Admission {
            index: index.clone(),
            client,
            namespace: self.namespace.clone(),
        };
        let context = Arc::new(Context {
            applier: Applier::new(cluster.clone(), index.clone()),
            cluster,
            leadership,
            index,
            watches: watches.clone(),
            events,
            prober: Prober {
                timeout: self.probe_timeout.0.unsigned_abs(),
            },
            clock: Arc::new(SystemClock),
            metrics: metrics.clone(),
            namespace: self.namespace,
            bundle_directory,
        });
        let timing = bundle_deployment::Delays {
            disarmed: self.disarm_delay.0.unsigned_abs(),
            stored: self.storage_delay.0.unsigned_abs(),
            look_again: self.look_again.0.unsigned_abs(),
        };

        let mut rotation = serving_certificate::Timing::default().with_scaled_waits(self.time_scale);
        if let Some(GoDuration(reload)) = self.reload_delay {
            rotation.reload = reload;
        }

        // A task that ends, for whatever reason, ends the process: half an operator looks like a whole one.
        let mut tasks = Tasks::new();
        start(&mut tasks, "watches", watching.run(stop.clone()));
        start(
            &mut tasks,
            "bundle-deployment",
            bundle_deployment::run(context.clone(), timing, stop.clone()),
        );
        start(
            &mut tasks,
            "serving-certificate",
            serving_certificate::run(context.clone(), rotation, stop.clone()),
        );
        start(
            &mut tasks,
            "annotated-service",
            annotated_service::run(context.clone(), stop.clone()),
        );
        start(
            &mut tasks,
            "direct-injection",
            direct_injection::run(context, stop.clone()),
        );
        if let Some(bind) = self.admission_bind {
            let stop = stop.clone();
            start(&mut tasks, "admission", async move {
                let served = admission::serve(bind, admission, stop).await;
                served.with_context(|| format!("cannot serve on {bind}"))
            });
        }
        if self.serve {
            let (stop, health) = (stop.clone(), Health { watches, metrics });
            start(&mut tasks, "health", async move {
                let served = health::serve(self.bind, health, stop).await;
                served.with_context(|| format!("cannot serve on {}", self.bind))
            });
        }
        supervise(tasks, stop).await
    }
}

/// A factor by which waits can be multiplied.
fn factor(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(factor) if (0.001..=1000.0).contains(&factor) => Ok(factor),
        _ => Err("write a number from 0.001 to 1000".to_owned()),
    }
}

fn start<E: Into<anyhow::Error>>(
    tasks: &mut Tasks,
    name: &'static str,
    task: impl Future<Output = Result<(), E>> + Send + 'static,
) {
    tasks.spawn(async move { (name, task.await.map_err(Into::into)) });
}

/// Waits for the first task to end. Before shutdown that is an error; then the others get some time to finish.
async fn supervise(mut tasks: Tasks, stop: CancellationToken) -> anyhow::Result<()> {
    let ended = tokio::select! {
        () = stop.cancelled() => None,
        ended = tasks.join_next() => ended,
    };
    let was_asked_to = ended.is_none() || stop.is_cancelled();
    stop.cancel();
    let finished = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, finished).await.is_err() {
        error!("Some tasks did not finish in time");
    }
    match ended {
        _ if was_asked_to => Ok(()),
        Some(Ok((name, Err(error)))) => Err(error.context(format!("the task {name} failed"))),
        Some(Ok((name, Ok(())))) => Err(anyhow!("the task {name} ended by itself")),
        Some(Err(error)) => Err(anyhow!(error).context("a task panicked")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that waits for `stop`.
    fn tasks(stop: &CancellationToken) -> Tasks {
        let mut tasks = Tasks::new();
        let stop = stop.clone();
        start(&mut tasks, "waits", async move {
            stop.cancelled().await;
            anyhow::Ok(())
        });
        tasks
    }

    #[tokio::test]
    async fn a_task_that_ends_by_itself_ends_everything() {
        let stop = CancellationToken::new();
        let mut tasks = tasks(&stop);
        start(&mut tasks, "ends", async { anyhow::Ok(()) });
        let error = supervise(tasks, stop).await.unwrap_err();
        assert_eq!(error.to_string(), "the task ends ended by itself");
    }

    #[tokio::test]
    async fn a_shutdown_is_no_error() {
        let stop = CancellationToken::new();
        let tasks = tasks(&stop);
        stop.cancel();
        supervise(tasks, stop).await.unwrap();
    }
}
