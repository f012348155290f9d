//! `windlass ui`: serves the page of `windlass report`.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Context as _;
use tokio::net::TcpListener;
use tracing::info;
use webhook_transport::{
    CertificateFiles, LiveCertificate,
    server::{Encryption, HttpVersions, ServerOptions, ServerTls},
};
use windlass_cluster::{
    Cluster, operator_config,
    telemetry::{LogFormat, start_logs},
};

use super::{
    connect::{client, configuration},
    run::shutdown,
};

const AFTER_HELP: &str =
    "Requests need a token of the cluster: as Authorization: Bearer, or as the password of any user, for
browsers. The API server authenticates it and authorizes the user.";

/// Serves the page of `windlass report` at /ui, over TLS, to users who may `get` that path.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// Path to the kubeconfig [default: the pod's ServiceAccount].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Folder with tls.crt and tls.key, reloaded on changes.
    #[arg(long, value_name = "DIR")]
    cert_dir: PathBuf,
    /// Address to serve on.
    #[arg(long, default_value = "0.0.0.0:9443", value_name = "ADDRESS")]
    bind: SocketAddr,
    /// Log format; $WINDLASS_LOG sets the filter.
    #[arg(
        long,
        value_enum,
        value_name = "json|text",
        hide_possible_values = true,
        default_value = "json"
    )]
    log_format: LogFormat,
}

/// How often the certificate is checked for changes.
const PERIOD: Duration = Duration::from_secs(1);

/// Timeout of a request to the API server, including all retries.
const REQUEST: Duration = Duration::from_secs(15);

impl Args {
    /// Serves until SIGTERM or SIGINT.
    ///
    /// # Errors
    ///
    /// When the cluster cannot be reached, the certificate cannot be read, or the address cannot be listened
    /// on.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        start_logs(self.log_format);
        let client = client(operator_config(configuration(self.kubeconfig.as_deref()).await?))?;
        let files = CertificateFiles::in_folder(&self.cert_dir);
        let certificate = LiveCertificate::follow(files, PERIOD).context("cannot serve the certificate")?;
        let tls = ServerTls::new(certificate, HttpVersions::Http1)?;
        let listener = TcpListener::bind(self.bind)
            .await
            .with_context(|| format!("cannot listen on {}", self.bind))?;
        info!(address = %listener.local_addr()?, "Serving {}", windlass_ui::PATH);
        let router = windlass_ui::router(client.clone(), Cluster::new(client, REQUEST));
        let ended = shutdown()?;
        webhook_transport::server::serve(
            listener,
            Encryption::Tls(tls),
            router,
            ServerOptions::default(),
            ended.cancelled(),
        )
        .await;
        Ok(ExitCode::SUCCESS)
    }
}
