//! The operator as a whole: leader election, controllers and servers, each as a task.
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
use interpreter::{
    in_cluster::ClusterServices,
    webhook::{InterpreterClient, WebhookCaller},
};
use kube::Client;
use oci::RegistryOptions;
use policy::Engines;
use serde_json::Value;
use thiserror::Error;
use tokio_util::sync::CancellationToken;
use tracing::error;
use webhook_transport::client::{Transport, TransportOptions};
use windlass_cluster::{
    ApiServerClock, Clock, Cluster, Index, SystemClock, WritePace,
    apply::Applier,
    events::Events,
    kinds,
    lease::{Candidate, Elector, Leadership, LeadershipLost, fenced},
    prober::Prober,
    remote::{RemoteCluster, RemoteConnection},
    telemetry::{
        ApiRequests, Metrics, chain,
        traces::{TraceOptions, TraceSetupError, Traces},
    },
    watches::Watches,
};
use windlass_object::{ObjectKey, ca_injectors::CaInjectors};

use crate::{
    admission::{self, Admission, AdmissionService, Bodies, CertificateResolver},
    annotated_service, bundle_deployment,
    ca_injectors::{self, CompetingInjectors},
    context::{Context, RemoteTargets},
    controllers::Controllers,
    direct_injection, extension_config, extension_config_policies,
    health::{self, Health, PolicyReadiness},
    injection_target,
    interpretation::Interpretation,
    metrics::metrics,
    policies::{self, AuditLedger, PolicyMetrics, PolicyServer, PolicyStore, ReferenceOptions, References},
    remote_cluster, serving_certificate,
    tasks::{ShutdownSteps, TaskError, Tasks},
};

/// The operator, ready to run.
pub struct Operator {
    client: Client,
    options: OperatorOptions,
    requests: ApiRequests,
    traces: Traces,
}

/// Settings of the operator.
#[derive(Clone, Debug)]
pub struct OperatorOptions {
    /// Controllers to run.
    pub controllers: Controllers,
    /// The operator's namespace, with the CA keys and the ConfigMaps of bundles.
    pub namespace: String,
    /// Pod that events name as their reporter; `None` outside of a cluster.
    pub pod: Option<String>,
    /// Root of the directories that BundleDeployments can name in spec.source.directory.
    pub bundle_directory: Option<PathBuf>,
    /// Secret with the kubeconfig of the remote cluster, whose targets are injected too.
    pub remote: Option<ObjectKey>,
    /// Candidate for leader election. With `None`, this process is always the leader and must be the only
    /// one.
    pub candidate: Option<Candidate>,
    /// CA injectors that Windlass replaces: it handles their annotations unless they run.
    pub replaced_injectors: CaInjectors,
    /// Address of /livez, /readyz and /metrics; disabled if `None`.
    pub health: Option<SocketAddr>,
    /// Address of the admission server for the guard and for policies; disabled if `None`.
    pub admission: Option<SocketAddr>,
    /// LabelSelector of the objects that are sent to policies; empty for all.
    pub policy_objects: Value,
    /// Settings for calls of servers that policies refer to.
    pub policy_servers: ReferenceOptions,
    /// Timeout of a request to the API server, including all retries.
    pub request_timeout: Duration,
    /// Timeout of a probe of an endpoint.
    pub probe_timeout: Duration,
    /// Delays between the steps of an install.
    pub delays: bundle_deployment::Delays,
    /// Settings for image registries.
    pub registries: RegistryOptions,
    /// Delays between the steps of a rotation.
    pub rotation: serving_certificate::Timing,
    /// Export of traces of rotations and installs; disabled if `None`.
    pub traces: Option<TraceOptions>,
}

/// Why the operator stopped.
#[derive(Debug, Error)]
pub enum OperatorError {
    /// The bundle directory cannot be read.
    #[error("cannot read the bundle directory {}", path.display())]
    BundleDirectory {
        /// Path as configured.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The settings for traces are invalid.
    #[error(transparent)]
    Traces(#[from] TraceSetupError),
    /// This process lost the leadership.
    #[error(transparent)]
    Leadership(#[from] LeadershipLost),
    /// A task stopped unexpectedly.
    #[error(transparent)]
    Task(#[from] TaskError),
}

/// Dependencies of the admission server for policies.
struct ServedPolicies {
    store: Arc<PolicyStore>,
    references: Arc<References>,
    ledger: Arc<AuditLedger>,
}

impl Operator {
    /// Creates an operator. `client` must not retry requests itself: [`kube::Config::default_retry`].
    pub fn new(client: Client, options: OperatorOptions) -> Self {
        Self {
            client,
            options,
            requests: ApiRequests::default(),
            traces: Traces::default(),
        }
    }

    /// Runs until `shutdown`.
    ///
    /// # Errors
    ///
    /// If the bundle directory cannot be read, the settings for traces are invalid, this process loses the
    /// leadership, or a task stops unexpectedly. All other tasks are then stopped.
    pub fn run(self, shutdown: CancellationToken) -> BoxFuture<'static, Result<(), OperatorError>> {
        // Boxed, so that this body is compiled once here instead of in every program that runs it.
        Box::pin(self.elect_and_work(shutdown))
    }

    async fn elect_and_work(mut self, shutdown: CancellationToken) -> Result<(), OperatorError> {
        let clock = Arc::new(ApiServerClock::new());
        if let Some(options) = &self.options.traces {
            self.traces = Traces::start(options, Arc::new(SystemClock))?;
        }
        self.client = self
            .traces
            .trace_requests(self.requests.count_requests(clock.observe_responses(self.client)));
        let (elector, leadership) = match &self.options.candidate {
            Some(candidate) => {
                let cluster = Cluster::new(self.client.clone(), candidate.timing().renew_deadline);
                let (namespace, lease) = (&self.options.namespace, self.options.controllers.lease());
                let (elector, leadership) = Elector::new(cluster, namespace, lease, candidate.clone());
                (Some(elector), leadership)
            }
            None => (None, Leadership::always()),
        };
        let mut connection = RemoteConnection::default();
        let cluster = Cluster::new(
            fenced(self.client.clone(), leadership.clone()),
            self.options.request_timeout,
        );
        let cluster = cluster.with_remote(self.remote_cluster(&mut connection, &leadership));
        let (events, publisher) = Events::new(cluster.clone(), self.options.pod.clone());
        let ending = ShutdownSteps::new(shutdown.child_token(), self.answers_reviews());
        let (stop, worked) = (ending.stop.clone(), ending.worked.clone());
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
        let working = async {
            let result = self
                .work(cluster, connection, leadership, events.clone(), clock, ending)
                .await;
            worked.cancel();
            result
        };
        let publishing = async {
            publisher.run(worked.clone()).await;
            // Not earlier: until here writes may be in progress, and no other process may become the leader.
            released.cancel();
        };
        let (elected, worked, ()) = tokio::join!(elected, working, publishing);
        self.traces.flush().await;
        elected?;
        worked
    }

    /// Runs all tasks that use `cluster` until they stop.
    async fn work(
        &self,
        cluster: Cluster,
        mut connection: RemoteConnection,
        leadership: Leadership,
        events: Events,
        clock: Arc<dyn Clock>,
        ending: ShutdownSteps,
    ) -> Result<(), OperatorError> {
        let directory = self.options.bundle_directory.as_deref();
        let bundle_directory = directory.map(canonical).transpose()?;
        let index = Arc::new(Index::with_replaced_injectors(
            self.options.replaced_injectors.clone(),
        ));
        let competing_injectors = Arc::<CompetingInjectors>::default();
        let (watches, watching) = Watches::new(cluster.clone(), index.clone(), self.served_secret());
        let metrics = Arc::new(metrics(
            &index,
            &watches,
            &leadership,
            &clock,
            &events,
            &self.requests,
        ));
        metrics.extend(|registry| self.traces.register(registry));
        let caller = interpreter_client(&self.client);
        let interpretation = Arc::new(Interpretation::new(index.clone(), caller, metrics.clone()));
        let policies = Arc::new(self.policy_store(&index, &metrics));
        let context = |cluster: Cluster, leadership: &Leadership| Context {
            policies: policies.clone(),
            applier: Applier::new(cluster.clone(), index.clone()).retaining(interpretation.clone()),
            interpretation: interpretation.clone(),
            cluster,
            leadership: leadership.clone(),
            index: index.clone(),
            watches: watches.clone(),
            events: events.clone(),
            competing_injectors: competing_injectors.clone(),
            pace: WritePace::new(),
            remote: self.options.remote.clone().map(RemoteTargets::new),
            prober: Prober {
                timeout: self.options.probe_timeout,
                clock: clock.clone(),
            },
            clock: clock.clone(),
            metrics: metrics.clone(),
            traces: self.traces.clone(),
            namespace: self.options.namespace.clone(),
            bundle_directory: bundle_directory.clone(),
        };
        // Not fenced, since a standby process repairs trust bundles too. It is used for nothing else.
        let always = Leadership::always();
        let client = fenced(self.client.clone(), always.clone());
        let unfenced = Cluster::new(client, self.options.request_timeout);
        let unfenced = unfenced.with_remote(self.remote_cluster(&mut connection, &always));
        let standby = Arc::new(context(unfenced, &always));
        let context = Arc::new(context(cluster, &leadership));
        let mut tasks = Tasks::new();
        tasks.start_unfenced("watches", watching.run(ending.drained.clone()));
        self.start_controllers(&mut tasks, &context, &standby, &ending.stop);
        let policies = self.start_policies(&mut tasks, &context, &ending);
        self.start_servers(&mut tasks, &context, policies, &ending);
        if let Some(secret) = &self.options.remote {
            let connecting = remote_cluster::run(context, secret.clone(), connection, ending.stop.clone());
            tasks.start("remote-cluster", connecting);
        }
        Ok(tasks.supervise(ending.stop, ending.worked).await?)
    }

    /// Reports whether this operator answers AdmissionReviews.
    fn answers_reviews(&self) -> bool {
        self.options.admission.is_some() && self.options.controllers.can_answer_reviews()
    }

    /// Returns the Secret with the certificate of the admission server.
    fn served_secret(&self) -> ObjectKey {
        let service = AdmissionService::for_controllers(self.options.controllers);
        kinds::SECRET.object(Some(&self.options.namespace), service.secret)
    }

    /// Returns the remote cluster, if there is one, for writes under this leadership.
    fn remote_cluster(
        &self,
        connection: &mut RemoteConnection,
        leadership: &Leadership,
    ) -> Option<RemoteCluster> {
        self.options.remote.as_ref()?;
        Some(connection.fenced(leadership.clone()))
    }

    fn start_controllers(
        &self,
        tasks: &mut Tasks,
        context: &Arc<Context>,
        standby: &Arc<Context>,
        stop: &CancellationToken,
    ) {
        let OperatorOptions {
            controllers,
            delays,
            registries,
            rotation,
            ..
        } = &self.options;
        if controllers.has_bundles() {
            tasks.start(
                "bundle-deployment",
                bundle_deployment::run(context.clone(), *delays, registries.clone(), stop.clone()),
            );
        }
        if !controllers.has_certificates() {
            return;
        }
        if !self.options.replaced_injectors.is_empty() {
            tasks.start("ca-injectors", ca_injectors::run(context.clone(), stop.clone()));
        }
        tasks.start(
            "serving-certificate",
            serving_certificate::run(context.clone(), standby.clone(), rotation.clone(), stop.clone()),
        );
        tasks.start(
            "annotated-service",
            annotated_service::run(context.clone(), stop.clone()),
        );
        tasks.start(
            "direct-injection",
            direct_injection::run(context.clone(), standby.clone(), rotation.clone(), stop.clone()),
        );
        tasks.start(
            "injection-target",
            injection_target::run(context.clone(), stop.clone()),
        );
        tasks.start(
            "extension-config",
            extension_config::run(context.clone(), stop.clone()),
        );
        tasks.start(
            "extension-config-policies",
            extension_config_policies::run(context.clone(), stop.clone()),
        );
    }

    /// Creates the store of policies. Only a process that serves policies has metrics about them.
    fn policy_store(&self, index: &Arc<Index>, metrics: &Arc<Metrics>) -> PolicyStore {
        match self.options.controllers.has_policies() {
            true => PolicyStore::new(
                index.clone(),
                Engines::built_in(),
                metrics.extend(PolicyMetrics::register),
            ),
            false => PolicyStore::without_metrics(index.clone()),
        }
    }

    /// Starts the tasks that policies need. Returns the dependencies of the admission server, if this process
    /// serves policies.
    fn start_policies(
        &self,
        tasks: &mut Tasks,
        context: &Arc<Context>,
        ending: &ShutdownSteps,
    ) -> Option<ServedPolicies> {
        let controllers = self.options.controllers;
        let store = context.policies.clone();
        if controllers.has_policies() || controllers.has_bundles() {
            tasks.start_unfenced("policy-store", store.clone().run(ending.drained.clone()));
        }
        if !controllers.has_policies() {
            return None;
        }
        let service = AdmissionService::for_controllers(controllers);
        // Not fenced, since a standby process reads and reports too.
        let unfenced = Cluster::new(self.client.clone(), self.options.request_timeout);
        let references = Arc::new(References::new(
            unfenced.clone(),
            context.clock.clone(),
            &self.options.policy_servers,
        ));
        let watching = references
            .clone()
            .run(store.clone(), context.index.clone(), ending.drained.clone());
        tasks.start_unfenced("policy-references", watching);
        tasks.start(
            "policy",
            policies::run(
                context.clone(),
                store.clone(),
                references.clone(),
                service,
                self.options.policy_objects.clone(),
                ending.stop.clone(),
            ),
        );
        let ledger = Arc::new(AuditLedger::new(
            context.index.clone(),
            context.clock.clone(),
            store.unreported(),
        ));
        tasks.start_unfenced(
            "policy-reports",
            policies::write_reports(
                context.clone(),
                unfenced,
                store.clone(),
                ledger.clone(),
                ending.drained.clone(),
            ),
        );
        Some(ServedPolicies {
            store,
            references,
            ledger,
        })
    }

    fn start_servers(
        &self,
        tasks: &mut Tasks,
        context: &Context,
        policies: Option<ServedPolicies>,
        ending: &ShutdownSteps,
    ) {
        let controllers = self.options.controllers;
        let certificate = Arc::new(CertificateResolver::new(
            context.index.clone(),
            self.served_secret(),
        ));
        let has_policies = policies.is_some();
        if let Some(bind) = self.options.admission.filter(|_| self.answers_reviews()) {
            let bodies = Arc::<Bodies>::default();
            // Not fenced, since a standby process answers too.
            let client = self.client.clone();
            let policies = policies.map(|policies| {
                let index = context.index.clone();
                Arc::new(PolicyServer::new(
                    policies.store,
                    index,
                    client.clone(),
                    bodies.clone(),
                    policies.references,
                    policies.ledger,
                ))
            });
            let admission = Admission {
                index: context.index.clone(),
                client,
                namespace: context.namespace.clone(),
                has_guard: controllers.has_bundles(),
                policies,
                certificate: certificate.clone(),
                bodies,
            };
            let (stop, drained) = (ending.stop.clone(), ending.drained.clone());
            tasks.start_unfenced("admission", async move {
                let _drained = drained.drop_guard();
                admission::serve(bind, admission, stop).await
            });
        }
        if let Some(bind) = self.options.health {
            let health = Health {
                watches: context.watches.clone(),
                metrics: context.metrics.clone(),
                policies: has_policies.then(|| PolicyReadiness::new(certificate, &context.policies)),
            };
            tasks.start_unfenced("health", health::serve(bind, health, ending.drained.clone()));
        }
    }
}

/// Creates the client for interpreter webhooks. It resolves their Services with `client`, which only reads.
fn interpreter_client(client: &Client) -> Arc<dyn WebhookCaller> {
    let transport = Transport::new(TransportOptions {
        resolver: Arc::new(ClusterServices::new(client.clone())),
        user_agent: concat!("windlass/", env!("CARGO_PKG_VERSION")).to_owned(),
        ..InterpreterClient::transport_options()
    });
    Arc::new(InterpreterClient::new(transport))
}

fn canonical(path: &Path) -> Result<PathBuf, OperatorError> {
    path.canonicalize()
        .map_err(|source| OperatorError::BundleDirectory {
            path: path.to_owned(),
            source,
        })
}
