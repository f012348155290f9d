//! The operator as a whole: leader election, and under it the controllers and servers, each a task.
//!
//! ```text
//! elector -> leadership -> fenced client -> watches, controllers
//!                                       \-> servers: health, admission
//! ```

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use kube::Client;
use thiserror::Error;
use tokio_util::sync::CancellationToken;
use tracing::error;
use windlass_cluster::{
    Cluster, Index, SystemClock,
    apply::Applier,
    events::Events,
    lease::{Candidate, Elector, Leadership, LeadershipLost, fenced},
    prober::Prober,
    telemetry::{Metrics, chain},
    watches::{Supervisor, Watches},
};

use crate::{
    admission::{self, Admission},
    annotated_service, bundle_deployment,
    context::Context,
    direct_injection,
    health::{self, Health},
    serving_certificate,
    tasks::{TaskError, Tasks},
};

/// The operator, ready to run.
pub struct Operator {
    client: Client,
    options: OperatorOptions,
}

/// How the operator works.
#[derive(Clone, Debug)]
pub struct OperatorOptions {
    /// Its own namespace: CA keys are kept in it, and ConfigMaps with bundles are read from it.
    pub namespace: String,
    /// The pod that its events name as their reporter; `None` outside of a cluster.
    pub pod: Option<String>,
    /// Root of the directories that BundleDeployments can name in spec.source.directory.
    pub bundle_directory: Option<PathBuf>,
    /// Who stands for election, and how. `None`: this process always leads, and must be the only one.
    pub candidate: Option<Candidate>,
    /// Where /livez, /readyz and /metrics are served; nowhere if `None`.
    pub health: Option<SocketAddr>,
    /// Where the guard answers AdmissionReviews; nowhere if `None`.
    pub admission: Option<SocketAddr>,
    /// Timeout of a request to the API server, including all retries.
    pub request_timeout: Duration,
    /// Timeout of a probe of an endpoint.
    pub probe_timeout: Duration,
    /// How long the steps of an install wait.
    pub delays: bundle_deployment::Delays,
    /// How long the steps of a rotation wait.
    pub rotation: serving_certificate::Timing,
}

/// Why the operator ended.
#[derive(Debug, Error)]
pub enum OperatorError {
    /// The folder of bundles cannot be read.
    #[error("cannot read the bundle directory {}", path.display())]
    BundleDirectory {
        /// As it was given.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// This process has led, and leads no longer.
    #[error(transparent)]
    Leadership(#[from] LeadershipLost),
    /// A task ended that should not have.
    #[error(transparent)]
    Task(#[from] TaskError),
}

// === impl Operator ===

impl Operator {
    /// An operator that works through `client`, which must not retry by itself: [`kube::Config::default_retry`].
    pub fn new(client: Client, options: OperatorOptions) -> Self {
        Self { client, options }
    }

    /// Runs until `shutdown`.
    ///
    /// # Errors
    ///
    /// When the bundle directory cannot be read, this process has led and leads no longer, or a task has ended that
    /// should not have; the others are stopped then.
    pub fn run(self, shutdown: CancellationToken) -> BoxFuture<'static, Result<(), OperatorError>> {
        // Boxed: the body is compiled here once, not again in every program that runs it.
        Box::pin(self.elect_and_work(shutdown))
    }

    async fn elect_and_work(self, shutdown: CancellationToken) -> Result<(), OperatorError> {
        let (elector, leadership) = match &self.options.candidate {
            Some(candidate) => {
                let cluster = Cluster::new(self.client.clone(), candidate.timing().renew_deadline);
                let (elector, leadership) = Elector::new(cluster, &self.options.namespace, candidate.clone());
                (Some(elector), leadership)
            }
            None => (None, Leadership::always()),
        };
        let cluster = Cluster::new(
            fenced(self.client.clone(), leadership.clone()),
            self.options.request_timeout,
        );
        let events = Events::new(cluster.clone(), self.options.pod.clone());
        let stop = shutdown.child_token();
        let released = CancellationToken::new();
        let elected = async {
            let Some(elector) = elector else { return Ok(()) };
            let result = elector.run(events.clone(), released.clone()).await;
            if let Err(lost) = &result {
                error!(error = chain(lost), "Lost leadership; exiting to be restarted");
            }
            stop.cancel();
            result
        };
        let worked = async {
            let result = self.work(cluster, leadership, events.clone(), stop.clone()).await;
            // Only now: until here writes may be under way, and nobody else may lead.
            released.cancel();
            result
        };
        let (elected, worked) = tokio::join!(elected, worked);
        elected?;
        worked
    }

    /// Runs everything that reads and writes through `cluster`, until `stop`.
    async fn work(
        &self,
        cluster: Cluster,
        leadership: Leadership,
        events: Events,
        stop: CancellationToken,
    ) -> Result<(), OperatorError> {
        let directory = self.options.bundle_directory.as_deref();
        let bundle_directory = directory.map(canonical).transpose()?;
        let index = Arc::new(Index::new());
        let (watches, watching) = Watches::new(cluster.clone(), index.clone());
        let metrics = Arc::new(metrics(&index, &watches, &leadership));
        let context = Arc::new(Context {
            applier: Applier::new(cluster.clone(), index.clone()),
            cluster,
            leadership,
            index,
            watches,
            events,
            prober: Prober {
                timeout: self.options.probe_timeout,
            },
            clock: Arc::new(SystemClock),
            metrics,
            namespace: self.options.namespace.clone(),
            bundle_directory,
        });
        let mut tasks = Tasks::new();
        self.start_controllers(&mut tasks, &context, watching, &stop);
        self.start_servers(&mut tasks, &context, &stop);
        Ok(tasks.supervise(stop).await?)
    }

    fn start_controllers(
        &self,
        tasks: &mut Tasks,
        context: &Arc<Context>,
        watching: Supervisor,
        stop: &CancellationToken,
    ) {
        let OperatorOptions { delays, rotation, .. } = &self.options;
        tasks.start("watches", watching.run(stop.clone()));
        tasks.start(
            "bundle-deployment",
            bundle_deployment::run(context.clone(), *delays, stop.clone()),
        );
        tasks.start(
            "serving-certificate",
            serving_certificate::run(context.clone(), rotation.clone(), stop.clone()),
        );
        tasks.start(
            "annotated-service",
            annotated_service::run(context.clone(), stop.clone()),
        );
        tasks.start(
            "direct-injection",
            direct_injection::run(context.clone(), stop.clone()),
        );
    }

    fn start_servers(&self, tasks: &mut Tasks, context: &Context, stop: &CancellationToken) {
        if let Some(bind) = self.options.admission {
            let admission = Admission {
                index: context.index.clone(),
                // Not fenced: one that stands by answers, too.
                client: self.client.clone(),
                namespace: context.namespace.clone(),
            };
            tasks.start("admission", admission::serve(bind, admission, stop.clone()));
        }
        if let Some(bind) = self.options.health {
            let health = Health {
                watches: context.watches.clone(),
                metrics: context.metrics.clone(),
            };
            tasks.start("health", health::serve(bind, health, stop.clone()));
        }
    }
}

/// The metrics, with the size of the index, what cannot be listed, and who leads.
fn metrics(index: &Arc<Index>, watches: &Watches, leadership: &Leadership) -> Metrics {
    let metrics = Metrics::new();
    let sizes = index.clone();
    metrics.report_sizes(move || {
        let sizes = sizes.sizes().into_iter();
        sizes.map(|(kind, size)| (kind.to_string(), size)).collect()
    });
    let seen = watches.clone();
    metrics.report_unlisted(move || seen.unlisted().iter().map(ToString::to_string).collect());
    let leads = leadership.clone();
    metrics.report_leader(move || leads.check().is_ok());
    metrics
}

fn canonical(path: &Path) -> Result<PathBuf, OperatorError> {
    path.canonicalize()
        .map_err(|source| OperatorError::BundleDirectory {
            path: path.to_owned(),
            source,
        })
}
