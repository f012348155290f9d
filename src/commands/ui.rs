//! `windlass ui`: the page of `windlass report`, served.

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

/// Serves the page of `windlass report` at /ui, over TLS, to those who may `get` that path.
///
/// A request needs a token of the cluster: as `Authorization: Bearer`, or as the password of any user, which browsers ask for. The API
/// server says whose it is, and whether that user may see the page.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    /// Path to the kubeconfig [default: $KUBECONFIG, ~/.kube/config, or the pod's ServiceAccount].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Folder with tls.crt and tls.key, read again when they change.
    #[arg(long, value_name = "DIR")]
    cert_dir: PathBuf,
    /// Address to serve on.
    #[arg(long, default_value = "0.0.0.0:9443", value_name = "ADDRESS")]
    bind: SocketAddr,
    /// Log format. $WINDLASS_LOG sets the log filter, for example windlass=debug.
    #[arg(long, value_enum, default_value = "json")]
    log_format: LogFormat,
}

/// How often the certificate is looked at.
const PERIOD: Duration = Duration::from_secs(1);

/// How long a request to the API server may take, with all its retries.
const REQUEST: Duration = Duration::from_secs(15);

// === impl Args ===

impl Args {
    /// Serves until SIGTERM or SIGINT.
    ///
    /// # Errors
    ///
    /// When the cluster cannot be reached, the certificate not be read, or the address not be listened on.
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
