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
    kinds,
    lease::Candidate,
    operator_config,
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

/// The shortest interval that does not overload registries.
const SHORTEST_IMAGE_INTERVAL: Duration = Duration::from_secs(1);

/// Runs the operator.
#[derive(Clone, Debug, Parser)]
pub struct Args {
    /// Path to the kubeconfig [default: the pod's ServiceAccount].
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Root of the directories in spec.source.directory.
    #[arg(long, value_name = "DIR", help_heading = "Controllers")]
    pub bundle_dir: Option<PathBuf>,
    /// The operator's namespace.
    #[arg(
        long,
        env = "WINDLASS_NAMESPACE",
        default_value = "windlass-system",
        value_name = "NAMESPACE"
    )]
    pub namespace: String,
    /// Controllers to run, comma-separated.
    #[arg(long, value_name = "LIST", default_value_t = Controllers::DEFAULT, help_heading = "Controllers")]
    pub controllers: Controllers,
    /// Honor annotations of cert-manager, service-ca, cluster-api; comma-separated.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        help_heading = "Controllers"
    )]
    pub answer_annotations_of: Vec<CaInjector>,
    /// Secret with the kubeconfig of a second cluster, whose targets to inject.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = secret, help_heading = "Controllers")]
    pub remote_kubeconfig_secret: Option<ObjectKey>,
    /// Server that policies may call, repeatable [default: none].
    #[arg(long, value_name = "HOST[:PORT]", help_heading = "Policies")]
    pub policy_http_host: Vec<AllowedHost>,
    /// CA certificates (PEM) of policy servers, besides the system's.
    #[arg(long, value_name = "FILE", help_heading = "Policies")]
    pub policy_http_ca: Option<PathBuf>,
    /// How long responses are cached.
    #[arg(
        long,
        default_value = "10s",
        value_name = "DURATION",
        help_heading = "Policies"
    )]
    pub policy_http_cache: GoDuration,
    /// Access to registries of bundle images.
    #[command(flatten)]
    pub registries: RegistryAccess,
    /// How often to check for moved tags.
    #[arg(
        long,
        default_value = "5m",
        value_name = "DURATION",
        help_heading = "Registries"
    )]
    pub image_interval: GoDuration,
    /// Leader election of replicas.
    #[command(flatten)]
    pub election: LeaderElection,
    /// Address of /livez, /readyz and /metrics.
    #[arg(
        long,
        default_value = "0.0.0.0:8080",
        value_name = "ADDRESS",
        help_heading = "Addresses"
    )]
    pub bind: SocketAddr,
    /// Address of Windlass's own admission webhooks (TLS).
    #[arg(long, value_name = "ADDRESS", help_heading = "Addresses")]
    pub admission_bind: Option<SocketAddr>,
    /// Selector of the objects that policies apply to.
    #[arg(long, value_name = "SELECTOR", value_parser = label_selector::parse, help_heading = "Policies")]
    pub policy_object_selector: Option<Value>,
    /// Where traces are exported to.
    #[command(flatten)]
    pub traces: TraceExport,
    /// Log format; $WINDLASS_LOG sets the filter.
    #[arg(
        long,
        value_enum,
        value_name = "json|text",
        hide_possible_values = true,
        default_value = "json",
        help_heading = "Logs and traces"
    )]
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
    /// How often to check states that no watch reports.
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
                "the kubeconfig impersonates a user, which prevents Windlass from impersonating ServiceAccounts: remove `as` from it"
            );
            let client = client(operator_config(config))?;
            Operator::new(client, options).run(shutdown()?).await?;
            Ok(ExitCode::SUCCESS)
        })
    }

    /// Returns the options of the operator.
    ///
    /// # Errors
    ///
    /// When flags are inconsistent.
    pub fn options(&self) -> anyhow::Result<OperatorOptions> {
        ensure!(
            self.controllers.has_certificates() || self.answer_annotations_of.is_empty(),
            "--answer-annotations-of has no effect without the controllers of certificates: remove it, or set --controllers={}",
            Controllers::DEFAULT
        );
        ensure!(
            self.controllers.has_bundles() || self.bundle_dir.is_none(),
            "--bundle-dir has no effect without the controllers of bundles: remove it, or set --controllers={}",
            Controllers::DEFAULT
        );
        ensure!(
            self.controllers.can_answer_reviews() || self.admission_bind.is_none(),
            "--admission-bind has no effect without the controllers of bundles or policies: remove it, or set --controllers={}",
            Controllers::DEFAULT
        );
        ensure!(
            !self.controllers.has_policies() || self.admission_bind.is_some(),
            "--admission-bind must be set with the controllers of policies: it is the address of the policy server"
        );
        ensure!(
            self.controllers.has_certificates() || self.remote_kubeconfig_secret.is_none(),
            "--remote-kubeconfig-secret has no effect without the controllers of certificates: remove it, or set --controllers={}",
            Controllers::DEFAULT
        );
        ensure!(
            self.controllers.has_policies() || self.policy_object_selector.is_none(),
            "--policy-object-selector has no effect without the controllers of policies: remove it, or set --controllers={}",
            Controllers::POLICIES
        );
        ensure!(
            self.image_interval.0.unsigned_abs() >= SHORTEST_IMAGE_INTERVAL,
            "--image-interval must be at least 1s, to limit requests to registries"
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
            replaced_injectors: self.answer_annotations_of.iter().copied().collect(),
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

/// Returns a token that is cancelled at SIGTERM or SIGINT.
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

/// Parses the `NAMESPACE/NAME` of a Secret.
fn secret(text: &str) -> Result<ObjectKey, String> {
    match text.split_once('/') {
        Some((namespace, name)) if is_label(namespace) && is_subdomain(name) => {
            Ok(kinds::SECRET.object(Some(namespace), name))
        }
        _ => Err("must be NAMESPACE/NAME of a Secret".to_owned()),
    }
}

/// Parses a factor for waits.
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
    fn bundle_flags_need_the_bundles_controllers() {
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
    fn policy_controllers_must_be_named_and_need_an_admission_address() {
        assert!(!options(&[]).unwrap().controllers.has_policies());
        let error = options(&["--controllers=policies"]).unwrap_err().to_string();
        assert!(error.starts_with("--admission-bind must be set"), "{error}");
        let chosen = options(&["--controllers=policies", "--admission-bind=0.0.0.0:9443"]).unwrap();
        assert_eq!(chosen.controllers, Controllers::POLICIES);
    }

    #[test]
    fn policy_objects_are_selected_with_kubectl_syntax() {
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
    fn traces_need_a_collector_endpoint() {
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
    fn answered_injectors_need_the_certificates_controllers() {
        let flag = "--answer-annotations-of=cert-manager,cluster-api";
        let replaced = options(&[flag]).unwrap().replaced_injectors;
        assert_eq!(
            Vec::from_iter(replaced),
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
    fn a_remote_cluster_needs_a_secret_and_the_certificates_controllers() {
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
