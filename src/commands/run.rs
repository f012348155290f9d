//! `windlass run`: the operator.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context as _, ensure};
use clap::{ArgAction, Parser};
use futures::future::LocalBoxFuture;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::info;
use windlass_cluster::{
    kinds, operator_config,
    lease::Candidate,
    telemetry::{LogFormat, start_logs},
};
use windlass_object::{
    GoDuration, ObjectKey,
    ca_injectors::CaInjector,
    label_selector,
    rfc1123::{is_label, is_subdomain},
};
use windlass_operator::{
    Controllers, Operator, OperatorOptions,
    bundle_deployment::Delays,
    policies::{AllowedHost, ReferenceOptions},
    serving_certificate::Timing,
};

use crate::commands::{
    connect::{client, configuration},
    leader_election::LeaderElection,
    registry_access::RegistryAccess,
    trace_export::TraceExport,
};

/// What registries bear.
const SHORTEST_IMAGE_INTERVAL: Duration = Duration::from_secs(1);

/// Runs the operator.
#[derive(Clone, Debug, Parser)]
pub struct Args {
    /// Path to the kubeconfig [default: $KUBECONFIG, ~/.kube/config, or the pod's ServiceAccount].
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Root of the directories that BundleDeployments can name in spec.source.directory.
    #[arg(long, value_name = "DIR")]
    pub bundle_dir: Option<PathBuf>,
    /// The operator's own namespace, which holds CA keys and ConfigMaps with bundles.
    #[arg(
        long,
        env = "WINDLASS_NAMESPACE",
        default_value = "windlass-system",
        value_name = "NAMESPACE"
    )]
    pub namespace: String,
    /// The controllers to run: certificates, bundles, policies, with commas between. A process of its own may run each, with the
    /// rights that it needs and a Lease of its own.
    #[arg(long, value_name = "LIST", default_value_t = Controllers::DEFAULT)]
    pub controllers: Controllers,
    /// The CA injectors to stand in for, with commas between: cert-manager, service-ca, cluster-api. Windlass answers their
    /// annotations, while they are not at work themselves.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub answer_annotations_of: Vec<CaInjector>,
    /// Secret with the kubeconfig of a second cluster, such as Karmada's own API server, whose objects ask for CA bundles, too. Its
    /// key is kubeconfig or karmada.config. Rotations wait for the targets there.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = secret)]
    pub remote_kubeconfig_secret: Option<ObjectKey>,
    /// A server that policies may ask, for each time that this is given; none by default. *.DOMAIN stands for all below it. Without a
    /// port it is 443 or 80, by the URL.
    #[arg(long, value_name = "HOST[:PORT]")]
    pub policy_http_host: Vec<AllowedHost>,
    /// File with certificates (PEM) by which servers are trusted that policies ask, beside those of the system.
    #[arg(long, value_name = "FILE")]
    pub policy_http_ca: Option<PathBuf>,
    /// How long an answer to a policy is used again.
    #[arg(long, default_value = "10s", value_name = "DURATION")]
    pub policy_http_cache: GoDuration,
    /// How registries of bundles in images are asked.
    #[command(flatten)]
    pub registries: RegistryAccess,
    /// How often to look whether the tag of an image leads elsewhere. Digests never do.
    #[arg(long, default_value = "5m", value_name = "DURATION")]
    pub image_interval: GoDuration,
    /// How one replica is chosen to lead.
    #[command(flatten)]
    pub election: LeaderElection,
    /// Address to serve /livez, /readyz and /metrics on.
    #[arg(long, default_value = "0.0.0.0:8080", value_name = "ADDRESS")]
    pub bind: SocketAddr,
    /// Address to answer AdmissionReviews on, over TLS: those of the guard, and those that policies are asked about, which need it.
    /// Without the guard, changes to the conversion of a CustomResourceDefinition that a BundleDeployment claims are not denied, but
    /// reverted afterwards.
    #[arg(long, value_name = "ADDRESS")]
    pub admission_bind: Option<SocketAddr>,
    /// The labels of the objects that policies are asked about, as kubectl takes a selector, for example policies=on. An object that
    /// has them neither before a change nor after it is written as if there were no policies, also by those with failurePolicy Fail.
    #[arg(long, value_name = "SELECTOR", value_parser = label_selector::parse)]
    pub policy_object_selector: Option<Value>,
    /// Where traces are sent.
    #[command(flatten)]
    pub traces: TraceExport,
    /// Log format. $WINDLASS_LOG sets the log filter, for example windlass=debug.
    #[arg(long, value_enum, default_value = "json")]
    pub log_format: LogFormat,
    /// Timeout of a request to the API server, including all retries.
    #[arg(long, default_value = "30s", hide = true)]
    pub request_timeout: GoDuration,
    /// Timeout of a probe of an endpoint.
    #[arg(long, default_value = "5s", hide = true)]
    pub probe_timeout: GoDuration,
    /// How long disarmed webhooks are still served, until every API server has observed the change.
    #[arg(long, default_value = "10s", hide = true)]
    pub disarm_delay: GoDuration,
    /// How long after a change of the storage version objects may still be stored in the previous one.
    #[arg(long, default_value = "70s", hide = true)]
    pub storage_delay: GoDuration,
    /// How often to re-check what no watch reports.
    #[arg(long, default_value = "5s", hide = true)]
    pub recheck_interval: GoDuration,
    /// Factor for every wait of a rotation, for clusters that are faster or slower than a real one.
    #[arg(long, default_value = "1", value_parser = factor, hide = true)]
    pub time_scale: f64,
    /// Maximum time that servers take to read a changed Secret; not scaled.
    #[arg(long, hide = true)]
    pub reload_delay: Option<GoDuration>,
    /// Whether to serve /livez, /readyz and /metrics.
    #[arg(long, default_value_t = true, action = ArgAction::Set, hide = true)]
    pub serve: bool,
}

// === impl Args ===

impl Args {
    /// Runs until SIGTERM or SIGINT.
    ///
    /// # Errors
    ///
    /// When the cluster cannot be reached, or as [`Operator::run`].
    pub fn run(self) -> LocalBoxFuture<'static, anyhow::Result<ExitCode>> {
        // Boxed: the body is compiled here once, not again in every program that runs it.
        Box::pin(async move {
            start_logs(self.log_format);
            let options = self.options()?;
            let config = configuration(self.kubeconfig.as_deref()).await?;
            ensure!(
                config.auth_info.impersonate.is_none(),
                "the kubeconfig acts as another user, and so would whoever Windlass acts for: remove `as` from it"
            );
            let client = client(operator_config(config))?;
            Operator::new(client, options).run(shutdown()?).await?;
            Ok(ExitCode::SUCCESS)
        })
    }

    /// How the operator is to work.
    ///
    /// # Errors
    ///
    /// When flags do not fit together.
    pub fn options(&self) -> anyhow::Result<OperatorOptions> {
        ensure!(
            self.controllers.have_certificates() || self.answer_annotations_of.is_empty(),
            "--answer-annotations-of has no effect without the controllers of certificates: remove it, or set --controllers={}",
            Controllers::DEFAULT
        );
        ensure!(
            self.controllers.have_bundles() || self.bundle_dir.is_none(),
            "--bundle-dir has no effect without the controllers of bundles: remove it, or set --controllers={}",
            Controllers::DEFAULT
        );
        ensure!(
            self.controllers.answer_reviews() || self.admission_bind.is_none(),
            "--admission-bind has no effect without the controllers of bundles or policies: remove it, or set --controllers={}",
            Controllers::DEFAULT
        );
        ensure!(
            !self.controllers.have_policies() || self.admission_bind.is_some(),
            "--admission-bind must be set with the controllers of policies: they answer there"
        );
        ensure!(
            self.controllers.have_certificates() || self.remote_kubeconfig_secret.is_none(),
            "--remote-kubeconfig-secret has no effect without the controllers of certificates: remove it, or set --controllers={}",
            Controllers::DEFAULT
        );
        ensure!(
            self.controllers.have_policies() || self.policy_object_selector.is_none(),
            "--policy-object-selector has no effect without the controllers of policies: remove it, or set --controllers={}",
            Controllers::POLICIES
        );
        ensure!(
            self.image_interval.0.unsigned_abs() >= SHORTEST_IMAGE_INTERVAL,
            "--image-interval must be at least 1s: registries would be asked all the time"
        );
        let election = self.election.timing()?;
        let candidate = election.map(|election| Candidate::new(self.election.identity(), election));
        let wait = |duration: GoDuration| duration.0.unsigned_abs();
        let mut rotation = Timing::default().with_scaled_waits(self.time_scale);
        if let Some(GoDuration(reload)) = self.reload_delay {
            rotation.reload = reload;
        }
        Ok(OperatorOptions {
            controllers: self.controllers,
            namespace: self.namespace.clone(),
            pod: std::env::var("POD_NAME").ok(),
            bundle_directory: self.bundle_dir.clone(),
            remote: self.remote_kubeconfig_secret.clone(),
            candidate,
            answered: self.answer_annotations_of.iter().copied().collect(),
            health: self.serve.then_some(self.bind),
            admission: self.admission_bind,
            policy_objects: self.policy_object_selector.clone().unwrap_or_else(|| json!({})),
            policy_servers: self.policy_servers()?,
            request_timeout: wait(self.request_timeout),
            probe_timeout: wait(self.probe_timeout),
            delays: Delays {
                disarmed: wait(self.disarm_delay),
                stored: wait(self.storage_delay),
                recheck: wait(self.recheck_interval),
                doubtful: wait(self.recheck_interval) * 12,
                tags: wait(self.image_interval),
            },
            registries: self.registries.options()?,
            rotation,
            traces: self.traces.options()?,
        })
    }
}

impl Args {
    fn policy_servers(&self) -> anyhow::Result<ReferenceOptions> {
        let ca = match &self.policy_http_ca {
            Some(path) => std::fs::read(path)
                .with_context(|| format!("cannot read --policy-http-ca {}", path.display()))?,
            None => Vec::new(),
        };
        Ok(ReferenceOptions {
            hosts: self.policy_http_host.iter().cloned().collect(),
            ca,
            keep: self.policy_http_cache.0.unsigned_abs(),
        })
    }
}

/// Is cancelled at SIGTERM or SIGINT.
///
/// # Errors
///
/// When signals cannot be listened for.
pub(super) fn shutdown() -> anyhow::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        info!("Shutting down");
        stop.cancel();
    });
    Ok(shutdown)
}

/// The Secret `NAMESPACE/NAME`.
fn secret(text: &str) -> Result<ObjectKey, String> {
    match text.split_once('/') {
        Some((namespace, name)) if is_label(namespace) && is_subdomain(name) => {
            Ok(kinds::SECRET.object(Some(namespace), name))
        }
        _ => Err("must be NAMESPACE/NAME of a Secret".to_owned()),
    }
}

/// A factor by which waits can be multiplied.
fn factor(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(factor) if (0.001..=1000.0).contains(&factor) => Ok(factor),
        _ => Err("must be a number from 0.001 to 1000".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(arguments: &[&str]) -> anyhow::Result<OperatorOptions> {
        Args::try_parse_from(["run"].iter().chain(arguments))?.options()
    }

    #[test]
    fn what_belongs_to_bundles_is_refused_where_they_do_not_run() {
        assert_eq!(options(&[]).unwrap().controllers, Controllers::DEFAULT);
        let guarded = ["--admission-bind=0.0.0.0:9443", "--controllers=bundles"];
        assert_eq!(options(&guarded).unwrap().controllers, Controllers::BUNDLES);
        for flag in ["--admission-bind=0.0.0.0:9443", "--bundle-dir=/bundles"] {
            let error = options(&["--controllers=certificates", flag])
                .unwrap_err()
                .to_string();
            assert!(error.starts_with(flag.split('=').next().unwrap()), "{error}");
        }
        options(&["--controllers=certificates"]).unwrap();
    }

    #[test]
    fn policies_run_where_they_can_be_asked_and_only_if_they_are_named() {
        assert!(!options(&[]).unwrap().controllers.have_policies());
        let error = options(&["--controllers=policies"]).unwrap_err().to_string();
        assert!(error.starts_with("--admission-bind must be set"), "{error}");
        let chosen = options(&["--controllers=policies", "--admission-bind=0.0.0.0:9443"]).unwrap();
        assert_eq!(chosen.controllers, Controllers::POLICIES);
    }

    #[test]
    fn f24_objects_that_policies_are_for_are_selected_as_kubectl_does() {
        let policies = ["--controllers=policies", "--admission-bind=0.0.0.0:9443"];
        assert_eq!(options(&policies).unwrap().policy_objects, json!({}));
        let selecting = |selector| {
            let flag = ["--policy-object-selector", selector];
            options(&[policies.as_slice(), &flag].concat())
        };
        let objects = selecting("policies in (on, off)").unwrap().policy_objects;
        let expression = json!({"key": "policies", "operator": "In", "values": ["on", "off"]});
        assert_eq!(objects, json!({"matchExpressions": [expression]}));
        let error = selecting("a=b,policies?").unwrap_err().to_string();
        assert!(
            error.contains("--policy-object-selector") && error.contains(r#""policies?": must begin"#),
            "{error}"
        );
        let error = options(&["--policy-object-selector=a"]).unwrap_err().to_string();
        assert!(error.starts_with("--policy-object-selector "), "{error}");
    }

    #[test]
    fn traces_are_sent_where_a_collector_is_named() {
        assert!(options(&[]).unwrap().traces.is_none());
        let nowhere = ["--otlp-endpoint=", "--otlp-ca=/not/there"];
        assert!(options(&nowhere).unwrap().traces.is_none());
        let traces = options(&["--otlp-endpoint=https://collector:4318"])
            .unwrap()
            .traces;
        assert_eq!(traces.unwrap().collector.to_string(), "https://collector:4318/");
        for (flags, problem) in [
            (
                ["--otlp-endpoint=collector:4318", "--otlp-ca="],
                "--otlp-endpoint: must be http://HOST:PORT",
            ),
            (
                ["--otlp-endpoint=http://collector:4318", "--otlp-ca=/not/there"],
                "cannot read --otlp-ca /not/there",
            ),
        ] {
            let error = format!("{:#}", options(&flags).unwrap_err());
            assert!(error.starts_with(problem), "{error}");
        }
    }

    #[test]
    fn injectors_to_stand_in_for_belong_to_certificates() {
        let flag = "--answer-annotations-of=cert-manager,cluster-api";
        let answered = options(&[flag]).unwrap().answered;
        assert_eq!(
            Vec::from_iter(answered),
            [CaInjector::CertManager, CaInjector::ClusterApi]
        );
        let error = options(&["--controllers=bundles", flag]).unwrap_err().to_string();
        assert!(error.starts_with("--answer-annotations-of "), "{error}");
        let error = options(&["--answer-annotations-of=cainjector"])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("cert-manager, service-ca or cluster-api"),
            "{error}"
        );
    }

    #[test]
    fn a_remote_cluster_is_named_by_a_secret_and_belongs_to_certificates() {
        let flag = "--remote-kubeconfig-secret=karmada-system/karmada-kubeconfig";
        let remote = options(&["--controllers=certificates", flag]).unwrap().remote;
        assert_eq!(
            remote.unwrap().to_string(),
            "Secret karmada-system/karmada-kubeconfig"
        );
        assert_eq!(options(&[]).unwrap().remote, None);
        let error = options(&["--controllers=bundles", flag]).unwrap_err();
        assert!(
            error.to_string().starts_with("--remote-kubeconfig-secret"),
            "{error}"
        );
        for value in ["", "name", "a/b/c", "a/..", "/etc/kubeconfig", "a b/c"] {
            options(&[&format!("--remote-kubeconfig-secret={value}")]).unwrap_err();
        }
    }
}
