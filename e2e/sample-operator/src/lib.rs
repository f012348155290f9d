//! The webhook server that the sample bundles deploy, and the stand-in for images that are not available.
//!
//! ```text
//! connection -> first byte: TLS or plain -> path -> review -> admission | conversion -> response
//! ```

mod admission;
mod args;
mod certificate;
mod conversion;
mod review;
mod server;
mod service;
mod workloads;

use std::{future::Future, process, time::Duration};

use anyhow::{Context, bail};
use futures::future::BoxFuture;
use tokio::signal::unix::{SignalKind, signal};
use webhook_transport::{CertificateFiles, LiveCertificate};

use self::{server::SampleServer, service::Service};

pub use args::{AdmissionFault, Args, Misbehavior, SampleVersion};

/// How often the certificate files are checked for changes.
const POLL: Duration = Duration::from_millis(200);

/// Serves until SIGTERM or SIGINT, then finishes requests in flight.
///
/// # Errors
///
/// When a port is not available, or the certificate cannot be read at the start.
pub fn run(args: Args) -> BoxFuture<'static, anyhow::Result<()>> {
    // Boxed, so that the body is compiled once here and not again in every program that calls it.
    Box::pin(async move {
        start_logs();
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        serve(args, async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        })
        .await
    })
}

/// Serves until `stop` is ready, then finishes requests in flight.
///
/// # Errors
///
/// When a port is not available, or the certificate cannot be read at the start.
pub async fn serve(args: Args, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
    if args.has(&Misbehavior::Crash) {
        bail!("crashing, as requested by --fault crash");
    }
    let certificate = certificate(&args)?;
    let server = SampleServer::new(Service::new(&args)?, certificate, &args)?;
    for port in args.listening_ports() {
        server
            .listen(args.address, port)
            .await
            .with_context(|| format!("cannot listen on {}:{port}", args.address))?;
    }
    tracing::info!(address = %args.address, ports = ?args.listening_ports(), pid = process::id(), "Serving");
    stop.await;
    tracing::info!(linger = ?args.linger, "Draining");
    server.drain().await;
    tracing::info!("Stopped");
    Ok(())
}

/// Loads the certificate to serve. A stand-in without a certificate serves plain HTTP only, until one exists.
fn certificate(args: &Args) -> anyhow::Result<Option<LiveCertificate>> {
    if args.has(&Misbehavior::WrongCertificate) {
        return Ok(Some(certificate::untrusted()?));
    }
    if args.stand_in && args.cert_dir.is_none() {
        return Ok(None);
    }
    let files = CertificateFiles::in_folder(&args.certificate_folder()?);
    let certificate = if args.reload {
        LiveCertificate::follow(files.clone(), POLL)
    } else {
        LiveCertificate::load(&files)
    };
    match certificate {
        Ok(certificate) => Ok(Some(certificate)),
        Err(error) if args.stand_in => {
            tracing::warn!(%error, "No certificate to serve yet");
            Ok(Some(if args.reload {
                LiveCertificate::wait_for(files, POLL)
            } else {
                LiveCertificate::none()
            }))
        }
        Err(error) => Err(error).context("cannot load the serving certificate"),
    }
}

/// Logs JSON lines to standard error. Does nothing if the process has a logger already.
fn start_logs() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let started = tracing_subscriber::fmt()
        .json()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .try_init();
    drop(started);
}
